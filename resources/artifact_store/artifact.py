"""What extraction makes of a document: its chunks and knowledge entries, as one immutable artifact.

Ids are made from document, text and occurrence, never from position or time: an unchanged chunk keeps its id when
the text around it changes, and identical input gives identical bytes.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in its document a chunk stands.

    `start` and `end` count characters of the cleaned text; pages, slides and rows count from 1, turns of a conversation
    from 0.
    """

    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    last_page: int | None = None
    sheet: str | None = None
    row: int | None = None
    last_row: int | None = None
    turn: int | None = None


class Piece(msgspec.Struct, frozen=True):
    """A stretch of a document's text as the chunker cut it, before it has an id."""

    text: str
    place: Place


class Correction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person corrected a chunk: what extraction had made of it, who did it, when, and why if that was said.

    `original_id` is the id extraction gave the chunk; by it the chunk is found again in the next extraction.
    """

    original_id: str
    original_text: str
    by: str
    at: datetime
    note: str = ""


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """One retrievable stretch of text. Unique in its document by `chunk_id`."""

    chunk_id: str
    text: str
    place: Place
    correction: Correction | None = None


class Entry(msgspec.Struct, frozen=True):
    """One piece of knowledge, tied to the chunk it was found in.

    `kind` is one of `statement`, `key_phrase`, `entity`, `relation`, `topic`; in a conversation `memory` is what else
    is a `statement`.
    """

    entry_id: str
    kind: str
    text: str
    chunk_id: str


class Artifact(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole outcome of extracting one document, and what people corrected in it.

    `void_corrections` are chunks as they were corrected, whose original the document does not have any more. `parts` is
    the fingerprint of the extraction and `n_chars` the length of the text: with them a document's record can be made
    again without extracting anything.
    """

    document_id: str
    title: str
    media_type: str
    parser: str
    chunkset_hash: str
    chunks: tuple[Chunk, ...]
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()
    void_corrections: tuple[Chunk, ...] = ()
    parts: dict[str, str] = {}
    n_chars: int = 0


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
        chunks.append(Chunk(chunk_id(document_id, piece.text, occurrence), piece.text, piece.place))
    return tuple(chunks)


def chunk_id(document_id: str, text: str, occurrence: int) -> str:
    """The id of a chunk: `occurrence` tells chunks of one text apart, and counts from 0."""
    return short_hash(document_id, text, str(occurrence))


def entry_id(document_id: str, chunk_id: str, kind: str, text: str) -> str:
    """The id of an entry: the same statement in the same chunk is the same entry."""
    return short_hash(document_id, chunk_id, kind, text)


def memory_id(org_id: str, session_id: str, kind: str, text: str) -> str:
    """The id of an entry of a conversation: what was said once is not remembered twice, whichever turn says it."""
    return short_hash("memory", org_id, session_id, kind, text)


def chunkset_hash(chunks: Sequence[Chunk]) -> str:
    """Hash of the chunk texts and their order alone."""
    return short_hash(*(chunk.text for chunk in chunks))


def artifact_hash(artifact: Artifact) -> str:
    """Hash of chunk set, places and entries: what a store's content depends on, and no configuration.

    The ids of corrected chunks are in it, since they do not follow from the texts.
    """
    places = msgspec.json.encode([chunk.place for chunk in artifact.chunks])
    corrected = [chunk.chunk_id for chunk in artifact.chunks if chunk.correction is not None]
    entries = [entry.entry_id for entry in artifact.entries]
    return short_hash(artifact.chunkset_hash, artifact.title, places, *entries, *corrected)
