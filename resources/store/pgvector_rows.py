"""Rows as the pgvector store hands them over, and texts as PostgreSQL can hold them."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from resources.artifact_store.artifact import Chunk
from resources.embedder.embedder import Vectors
from resources.store.document_changes import PlacedChunk, PlacedEntry
from resources.store.store import DocumentBuild

# The columns of COPY_CHUNKS and COPY_ENTRIES. A vector goes as bytes in the extension's own format.
CHUNK_TYPES = (
    *("text", "text", "text", "text", "int4", "int8", "int8", "text[]", "int4", "int4", "text", "int4", "int4"),
    *("text", "int8", "bytea"),
)
ENTRY_TYPES = ("text", "text", "text", "text", "text")

_REPLACEMENT = "\ufffd"


def document_row(build: DocumentBuild) -> tuple[Any, ...]:
    """A document's own row."""
    return (
        build.document_id,
        build.org_id,
        build.source,
        build.source_uri,
        build.title,
        build.fencing_token,
        build.chunkset_hash,
        len(build.chunks),
        len(build.entries),
    )


def chunk_rows(placed: Sequence[PlacedChunk], vectors: Vectors) -> Iterator[tuple[Any, ...]]:
    """Whole rows of new chunks; `vectors` has one row each."""
    # Dimension and an unused number, then the numbers, in network order.
    head = struct.pack(">hh", vectors.shape[1], 0)
    for row, vector in zip(placed, vectors.astype(">f4"), strict=True):
        yield (
            row.build.document_id,
            row.chunk.chunk_id,
            *placement_values(row),
            row.chunk.text,
            row.build.fencing_token,
            head + vector.tobytes(),
        )


def placement_values(row: PlacedChunk) -> tuple[Any, ...]:
    """Where a chunk stands, as columns."""
    org_id, source, ordinal, start, end, headings, *rest = row.placement()
    return (org_id, source, ordinal, start, end, list(headings), *rest)


def entry_rows(entries: Iterable[PlacedEntry]) -> Iterator[tuple[Any, ...]]:
    """Whole rows of new entries."""
    for document_id, entry in entries:
        yield document_id, entry.entry_id, entry.chunk_id, entry.kind, entry.text


def storable_build(build: DocumentBuild) -> DocumentBuild:
    """The document with every NUL and lone surrogate in its texts replaced: PostgreSQL holds neither.

    Ids, tenant and source are left alone, since two could become one; such a document is refused when it is written.
    """
    if all(_is_storable(text) for text in _texts_of(build)):
        return build
    return msgspec.structs.replace(
        build,
        title=_storable(build.title),
        chunks=[_storable_chunk(chunk) for chunk in build.chunks],
        entries=[msgspec.structs.replace(entry, text=_storable(entry.text)) for entry in build.entries],
    )


def _texts_of(build: DocumentBuild) -> Iterator[str]:
    yield build.title
    for chunk in build.chunks:
        yield from chain((chunk.text, chunk.place.sheet or ""), chunk.place.headings)
    for entry in build.entries:
        yield entry.text


def _storable_chunk(chunk: Chunk) -> Chunk:
    place = msgspec.structs.replace(
        chunk.place,
        headings=tuple(_storable(heading) for heading in chunk.place.headings),
        sheet=None if chunk.place.sheet is None else _storable(chunk.place.sheet),
    )
    return msgspec.structs.replace(chunk, text=_storable(chunk.text), place=place)


def _is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable(text: str) -> str:
    return "".join(_REPLACEMENT if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
