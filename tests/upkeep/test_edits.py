"""What a person wants chunks to say, read from lines that anybody may have written."""

import msgspec
import pytest

from ingest_assets.upkeep.edits import LONGEST_TEXT, Edit, EditError, one_line, parse_edits, texts_by_chunk
from resources.artifact_store.artifact import Artifact, Piece, Place, chunks_of, chunkset_hash

CHUNKS = chunks_of("a", [Piece(text, Place(i, i + 1)) for i, text in enumerate(["one", "two", "one"])])
ARTIFACT = Artifact("a", "Title", "text/plain", "plain", chunkset_hash(CHUNKS), CHUNKS, ())
TWO = CHUNKS[1].chunk_id


def test_lines_as_shown_are_read():
    """What show writes is read with all its fields, blank lines, a byte order mark and Windows' line ends."""
    raw = b"\xef\xbb\xbf" + b"\r\n\r\n".join(msgspec.json.encode(chunk) for chunk in CHUNKS)
    assert parse_edits(raw) == [Edit(i, c.chunk_id, c.text) for i, c in zip((1, 3, 5), CHUNKS, strict=True)]
    assert texts_by_chunk(ARTIFACT, parse_edits(raw)) == {}


@pytest.mark.parametrize(
    "line", [b"no json", b"[]", b'{"chunk_id":"x"}', b'{"chunk_id":"x","text":1}', b'{"chunk_id":"x","text":"\xff"}',
             b'{"chunk_id":"x","text":"\\ud800"}']
)  # fmt: skip
def test_no_such_line(line):
    """A line that is no object of id and text is refused by its number."""
    with pytest.raises(EditError, match="Line 3: "):
        parse_edits(b'{"chunk_id":"x","text":"y"}\n\n' + line)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("\u202e", "empty"),
        ("a\0b", "NUL"),
        ("a\udc00", "surrogate"),
        ("x" * (LONGEST_TEXT + 1), "100,001 characters"),
    ],
)
def test_no_such_text(text, told):
    """A text that no chunk may have is refused by the number of its line."""
    with pytest.raises(EditError, match=f"Line 7: .*{told}"):
        texts_by_chunk(ARTIFACT, [Edit(7, TWO, text)])


def test_texts_are_cleaned():
    """A text is cleaned as a parsed one; what cleaning makes equal is no change."""
    assert texts_by_chunk(ARTIFACT, [Edit(1, TWO, "z\x07w\ufeffei\r\n")]) == {TWO: "zwei\n"}
    assert texts_by_chunk(ARTIFACT, [Edit(1, TWO, "tw\x07o")]) == {}


def test_unknown_and_doubled_chunks():
    """A chunk that is not there is refused unless its line is as it was shown; so are two texts for one chunk."""
    with pytest.raises(EditError, match="Line 2: It has no chunk 'nonsense'"):
        texts_by_chunk(ARTIFACT, [Edit(2, "nonsense", "x")])
    gone = chunks_of("a", [Piece("gone", Place(0, 1))])[0]
    assert texts_by_chunk(ARTIFACT, [Edit(2, gone.chunk_id, "gone")]) == {}
    assert texts_by_chunk(ARTIFACT, [Edit(1, TWO, "x"), Edit(2, TWO, "x")]) == {TWO: "x"}
    with pytest.raises(EditError, match="Line 2: an earlier line has another text"):
        texts_by_chunk(ARTIFACT, [Edit(1, TWO, "x"), Edit(2, TWO, "y")])


def test_names_are_one_line():
    """Names and notes are cleaned, and refused if they are too long to be one."""
    assert one_line(" Ann\n\x1b[31m Other ", "name", 20) == "Ann [31m Other"
    with pytest.raises(EditError, match="The name has 21 characters, more than 20"):
        one_line("x" * 21, "name", 20)
