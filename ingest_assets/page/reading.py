"""A document's text beside its chunks: each stretch of text once, although chunks may overlap, under its headings."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from resources.artifact_store.artifact import Artifact, Chunk, Entry, Place

CHUNKS_ON_A_PAGE = 50


class Passage(msgspec.Struct, frozen=True):
    """A chunk and the text it was cut from.

    Attributes:
        number: of the chunk in its document, from 1.
        chunk: as it stands in the index.
        entries: what was found in it.
        text: what of the document's text it adds to the chunk before it.
        is_elsewhere: it stands under another heading, or on another page or sheet, than the chunk before it.
    """

    number: int
    chunk: Chunk
    entries: Sequence[Entry]
    text: str
    is_elsewhere: bool


def passages(artifact: Artifact, first: int, most: int) -> list[Passage]:
    """The passages of an artifact from the chunk of the number `first` on, at most so many."""
    entries: dict[str, list[Entry]] = defaultdict(list)
    for entry in artifact.entries:
        entries[entry.chunk_id].append(entry)
    found = []
    for number in range(first, min(first + most, len(artifact.chunks) + 1)):
        chunk = artifact.chunks[number - 1]
        before = artifact.chunks[number - 2] if number > first else None
        found.append(
            Passage(
                number,
                chunk,
                entries[chunk.chunk_id],
                _text_behind(chunk, before),
                before is None or _where(chunk.place) != _where(before.place),
            )
        )
    return found


def _text_behind(chunk: Chunk, before: Chunk | None) -> str:
    """A chunk's own text as it was extracted, without what the chunk before it has shown."""
    text = chunk.correction.original_text if chunk.correction is not None else chunk.text
    is_verbatim = len(text) == chunk.place.end - chunk.place.start
    if before is None or not is_verbatim:
        return text
    return text[max(0, before.place.end - chunk.place.start) :]


def _where(place: Place) -> tuple[object, ...]:
    return place.headings, place.page, place.sheet
