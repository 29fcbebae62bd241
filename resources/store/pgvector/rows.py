"""Rows as the pgvector store hands them over."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.content import chunk_checksums, row_checksum
from resources.store.document_changes import DocumentRow, PlacedChunk, PlacedEntry
from resources.store.store import DocumentBuild

# The columns of COPY_CHUNKS and COPY_ENTRIES. A vector goes as bytes in the extension's own format.
CHUNK_TYPES = (
    *("text", "text", "text", "text", "int4", "int8", "int8", "text[]", "int4", "int4", "text", "int4", "int4"),
    *("text", "int8", "bytea", "text"),
)
ENTRY_TYPES = ("text", "text", "text", "text", "text")


def document_row(build: DocumentBuild) -> tuple[Any, ...]:
    """A document's own row."""
    row = DocumentRow.of(build)
    return (*row, row_checksum(row))


def chunk_rows(placed: Sequence[PlacedChunk], vectors: Vectors, stamp: EmbedderStamp) -> Iterator[tuple[Any, ...]]:
    """Whole rows of new chunks; `vectors` has one row each, of the embedder's."""
    # Dimension and an unused number, then the numbers, in network order.
    head = struct.pack(">hh", vectors.shape[1], 0)
    checksums = chunk_checksums(stamp, placed, vectors)
    for row, vector, checksum in zip(placed, vectors.astype(">f4"), checksums, strict=True):
        yield (
            row.build.document_id,
            row.chunk.chunk_id,
            *placement_values(row),
            row.chunk.text,
            row.build.fencing_token,
            head + vector.tobytes(),
            checksum,
        )


def sent_vector(raw: bytes) -> Vectors:
    """A vector from the extension's own format."""
    return np.frombuffer(raw, ">f4", offset=4).astype(np.float32)


def placement_values(row: PlacedChunk) -> tuple[Any, ...]:
    """Where a chunk stands, as columns."""
    org_id, source, ordinal, start, end, headings, *rest = row.placement()
    return (org_id, source, ordinal, start, end, list(headings), *rest)


def entry_rows(entries: Iterable[PlacedEntry]) -> Iterator[tuple[Any, ...]]:
    """Whole rows of new entries."""
    for document_id, entry in entries:
        yield document_id, entry.entry_id, entry.chunk_id, entry.kind, entry.text
