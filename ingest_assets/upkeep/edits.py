"""What a person wants chunks to say: JSON lines of chunk ids and texts, read with the number of each line."""

import codecs
from collections import Counter
from collections.abc import Sequence

import msgspec

from ingest_assets.parsing.clean import clean
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.corrections import UnknownChunkError, is_as_shown

LONGEST_TEXT = 100_000  # characters
LONGEST_NAME = 100
LONGEST_NOTE = 1_000


class EditError(ValueError):
    """What a person wrote cannot be a correction. Nothing was written."""


class Edit(msgspec.Struct, frozen=True):
    """A line: a chunk's id as it was shown, and the text it shall have. `line` counts from 1."""

    line: int
    chunk_id: str
    text: str


class _Line(msgspec.Struct):
    chunk_id: str
    text: str


def parse_edits(raw: bytes) -> list[Edit]:
    """Read JSON lines `{"chunk_id": "…", "text": "…"}`. Other fields, as `ingest chunks show --jsonl` has, are ignored.

    Raises:
        EditError: a line is no such object.
    """
    edits = []
    for number, line in enumerate(raw.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise EditError(f'Line {number}: {error}. Write {{"chunk_id": "…", "text": "…"}}.') from error
        edits.append(Edit(number, found.chunk_id, found.text))
    return edits


def texts_by_chunk(artifact: Artifact, edits: Sequence[Edit]) -> dict[str, str]:
    """The new texts, cleaned as parsed ones are, by the ids they are wanted for; without lines that change nothing.

    Raises:
        EditError: a text is empty, too long, or holds what no text may; or two lines differ about a chunk.
    """
    current = {chunk.chunk_id: chunk.text for chunk in artifact.chunks}
    done = {chunk.correction.original_id: chunk.text for chunk in artifact.chunks if chunk.correction}
    texts: dict[str, str] = {}
    for edit in edits:
        known = current.get(edit.chunk_id)
        if edit.text == known or (known is None and is_as_shown(artifact.document_id, edit.chunk_id, edit.text)):
            continue
        text = _checked(edit)
        if text in (known, done.get(edit.chunk_id)):
            continue  # as it is by now; or made just so already, by a command that was told nothing of it
        if known is None and edit.chunk_id not in done:
            raise EditError(f"Line {edit.line}: {UnknownChunkError(edit.chunk_id)}")
        if texts.setdefault(edit.chunk_id, text) != text:
            raise EditError(f"Line {edit.line}: an earlier line has another text for chunk '{edit.chunk_id}'.")
    return texts


def one_line(text: str, what: str, longest: int) -> str:
    """A name or a note of a person, cleaned.

    Raises:
        EditError: it is too long.
    """
    words = " ".join(clean(text, Counter()).split())
    if len(words) > longest:
        raise EditError(f"The {what} has {len(words):,} characters, more than {longest:,}.")
    return words


def _checked(edit: Edit) -> str:
    if "\0" in edit.text:
        raise EditError(f"Line {edit.line}: the text holds a NUL character.")
    if any("\ud800" <= c <= "\udfff" for c in edit.text):
        raise EditError(f"Line {edit.line}: the text holds half of a surrogate pair.")
    if len(edit.text) > LONGEST_TEXT:
        raise EditError(f"Line {edit.line}: the text has {len(edit.text):,} characters, more than {LONGEST_TEXT:,}.")
    text = clean(edit.text, Counter())
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise EditError(f"Line {edit.line}: the text is empty. A chunk can be corrected, not removed.")
    return text
