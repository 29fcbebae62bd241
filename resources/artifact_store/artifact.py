"""What extraction makes of a document: its chunks and knowledge entries, as one immutable artifact.

Ids are made from document, text and occurrence, never from position or time: an unchanged chunk keeps its id when
the text around it changes, and identical input gives identical bytes.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in its document a chunk stands.

    `start` and `end` count characters of the cleaned text; pages, slides and rows count from 1.
    """

    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    last_page: int | None = None
    sheet: str | None = None
    row: int | None = None
    last_row: int | None = None


class Piece(msgspec.Struct, frozen=True):
    """A stretch of a document's text as the chunker cut it, before it has an id."""

    text: str
    place: Place


class Chunk(msgspec.Struct, frozen=True):
    """One retrievable stretch of text. Unique in its document by `chunk_id`."""

    chunk_id: str
    text: str
    place: Place


class Entry(msgspec.Struct, frozen=True):
    """One piece of knowledge, tied to the chunk it was found in.

    `kind` is one of `statement`, `key_phrase`, `entity`.
    """

    entry_id: str
    kind: str
    text: str
    chunk_id: str


class Artifact(msgspec.Struct, frozen=True):
    """The whole outcome of extracting one document."""

    document_id: str
    title: str
    media_type: str
    parser: str
    chunkset_hash: str
    chunks: tuple[Chunk, ...]
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()


def short_hash(*parts: str | bytes) -> str:
    """32 hex digits of SHA-256 over length-prefixed parts, so that ("ab", "c") and ("a", "bc") differ."""
    framed: list[bytes] = []
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        framed += (len(raw).to_bytes(8, "big"), raw)
    return hashlib.sha256(b"".join(framed)).hexdigest()[:32]


def chunks_of(document_id: str, pieces: Iterable[Piece]) -> tuple[Chunk, ...]:
    """Give each piece its id: document, text, and how often that text came before in this document."""
    seen: Counter[str] = Counter()
    chunks = []
    for piece in pieces:
        occurrence = seen[piece.text]
        seen[piece.text] += 1
        chunk_id = short_hash(document_id, piece.text, str(occurrence))
        chunks.append(Chunk(chunk_id, piece.text, piece.place))
    return tuple(chunks)


def entry_id(document_id: str, chunk_id: str, kind: str, text: str) -> str:
    """The id of an entry: the same statement in the same chunk is the same entry."""
    return short_hash(document_id, chunk_id, kind, text)


def chunkset_hash(chunks: Sequence[Chunk]) -> str:
    """Hash of the chunk texts and their order alone."""
    return short_hash(*(chunk.text for chunk in chunks))
