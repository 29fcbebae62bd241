"""A document's text beside its chunks."""

from datetime import UTC, datetime

from ingest_assets.page.reading import passages
from resources.artifact_store.artifact import Artifact, Chunk, Correction, Entry, Place

WORDS = "One two three. Four five six. Seven eight."


def _artifact(*chunks: Chunk, entries: tuple[Entry, ...] = ()) -> Artifact:
    return Artifact("doc", "Title", "text/plain", "parser", "hash", chunks, entries)


def _chunk(name: str, start: int, end: int, page: int | None = None, correction: Correction | None = None) -> Chunk:
    return Chunk(name, WORDS[start:end], Place(start, end, page=page), correction)


def test_text_that_chunks_share_is_shown_once() -> None:
    """Chunks that overlap show each stretch of the document's text once, and each its whole text as a chunk."""
    shown = passages(_artifact(_chunk("a", 0, 29), _chunk("b", 15, 42)), 1, 50)
    assert "".join(passage.text for passage in shown) == WORDS
    assert [passage.chunk.text for passage in shown] == [WORDS[0:29], WORDS[15:42]]


def test_the_document_keeps_its_text_where_a_chunk_is_corrected() -> None:
    """Beside a corrected chunk stands what extraction had read."""
    correction = Correction("b", WORDS[15:42], "Maria", datetime(2026, 1, 1, tzinfo=UTC))
    corrected = Chunk("c", "Something else.", Place(15, 42), correction)
    shown = passages(_artifact(_chunk("a", 0, 29), corrected), 1, 50)
    assert "".join(passage.text for passage in shown) == WORDS
    assert shown[1].chunk.text == "Something else."


def test_a_page_of_chunks_begins_anywhere() -> None:
    """From any chunk on, numbers go on counting, the first is whole, and places are told where they change."""
    chunks = [_chunk("a", 0, 14, 1), _chunk("b", 10, 29, 2), _chunk("c", 29, 42, 2)]
    entries = (Entry("e", "topic", "numbers", "b"),)
    shown = passages(_artifact(*chunks, entries=entries), 2, 2)
    assert [passage.number for passage in shown] == [2, 3]
    assert shown[0].text == WORDS[10:29]
    assert [passage.is_elsewhere for passage in shown] == [True, False]
    assert [len(passage.entries) for passage in shown] == [1, 0]
    assert passages(_artifact(*chunks), 4, 2) == []
