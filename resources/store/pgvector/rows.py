"""Rows as the pgvector store hands them over."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from resources.embedder.embedder import Vectors
from resources.store.document_changes import PlacedChunk, PlacedEntry
from resources.store.store import DocumentBuild

# The columns of COPY_CHUNKS and COPY_ENTRIES. A vector goes as bytes in the extension's own format.
CHUNK_TYPES = (
    *("text", "text", "text", "text", "int4", "int8", "int8", "text[]", "int4", "int4", "text", "int4", "int4"),
    *("text", "int8", "bytea"),
)
ENTRY_TYPES = ("text", "text", "text", "text", "text")


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
