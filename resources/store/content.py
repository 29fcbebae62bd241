"""What a store really holds of a document, in a form that is compared exactly and cheaply: pure functions over rows.

Everything a row says can be derived from the document's artifact and record, except the vector. So each chunk carries
a checksum over its text and its vector, made where the row is written, and checking needs no embedder. A document's own
row carries one over itself. The rest is one hash, which `expected_content` gives for what shall stand there.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from resources.artifact_store.artifact import short_hash
from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.document_changes import DocumentRow, PlacedChunk, Placement
from resources.store.storable_texts import storable_build
from resources.store.store import DocumentBuild, HeldContent, RowFault

_CHECKSUM_DIGITS = 16
_encoder = msgspec.msgpack.Encoder()


class HeldChunk(NamedTuple):
    """A chunk's row. `is_sound`: whether it fits its checksum, None where it has none."""

    chunk_id: str
    placement: Placement
    text: str
    fencing_token: int
    is_sound: bool | None


class HeldEntry(NamedTuple):
    """An entry's row, without the document's id."""

    entry_id: str
    chunk_id: str
    kind: str
    text: str


def chunk_checksum(
    stamp: EmbedderStamp, document_id: str, chunk_id: str, text: str, fencing_token: int, vector: Vectors
) -> str:
    """The checksum of what never changes about a chunk's row. `vector` is of shape (dimension,)."""
    # Adding 0 makes -0 to 0: not every kind of store keeps the sign.
    numbers = (np.asarray(vector, dtype="<f4") + np.float32(0)).tobytes()
    return short_hash(str(stamp), document_id, chunk_id, text, str(fencing_token), numbers)[:_CHECKSUM_DIGITS]


def chunk_checksums(stamp: EmbedderStamp, placed: Sequence[PlacedChunk], vectors: Vectors) -> list[str]:
    """The checksums of new chunks; `vectors` has one row each."""
    return [
        chunk_checksum(stamp, build.document_id, chunk.chunk_id, chunk.text, build.fencing_token, vector)
        for (build, _, chunk), vector in zip(placed, vectors, strict=True)
    ]


def row_checksum(values: Iterable[object]) -> str:
    """The checksum of a document's own row."""
    return short_hash(_encoder.encode(list(values)))[:_CHECKSUM_DIGITS]


def expected_content(build: DocumentBuild) -> str:
    """The `content_hash` of a document that stands as given, in every kind of store."""
    build = storable_build(build)
    chunks = [
        (chunk.chunk_id, PlacedChunk(build, ordinal, chunk).placement(), chunk.text)
        for ordinal, chunk in enumerate(build.chunks)
    ]
    entries = {
        entry.entry_id: HeldEntry(entry.entry_id, entry.chunk_id, entry.kind, entry.text) for entry in build.entries
    }
    head = (build.org_id, build.source, build.source_uri, build.title, build.chunkset_hash)
    return _content_hash(head, chunks, list(entries.values()))


def held_content(
    document_id: str,
    documents: Sequence[tuple[DocumentRow, bool | None]],
    chunks: Sequence[HeldChunk],
    entries: Sequence[HeldEntry],
    other_faults: Counter[RowFault] | None = None,
) -> HeldContent:
    """Look at a document's rows.

    Args:
        document_id: which document.
        documents: its own row, with whether that fits its checksum (None: it has none); none or several are faults.
        chunks: its chunks, in any order.
        entries: its entries, in any order.
        other_faults: what a kind found that only it can have.
    """
    faults = Counter(other_faults or ())
    faults.update(fault for _, is_sound in documents if (fault := _fault(is_sound, RowFault.DAMAGED_DOCUMENT)))
    faults.update(fault for chunk in chunks if (fault := _fault(chunk.is_sound, RowFault.DAMAGED_CHUNK)))
    names = [("document", document_id) for _ in documents]
    names += [("chunk", chunk.chunk_id) for chunk in chunks] + [("entry", entry.entry_id) for entry in entries]
    faults[RowFault.TWICE] = len(names) - len(set(names))
    content_hash = chunkset_hash = source = ""
    if documents:
        row = documents[0][0]
        chunkset_hash, source = row.chunkset_hash, row.source
        faults[RowFault.WRONG_NUMBER] = abs(row.n_chunks - len(chunks)) + abs(row.n_entries - len(entries))
        content_hash = _content_hash(
            (row.org_id, row.source, row.source_uri, row.title, row.chunkset_hash),
            [(chunk.chunk_id, chunk.placement, chunk.text) for chunk in chunks],
            entries,
        )
    else:
        faults[RowFault.ORPHAN] = len(chunks) + len(entries)
    tokens = [row.fencing_token for row, _ in documents] + [chunk.fencing_token for chunk in chunks]
    return HeldContent(
        document_id,
        max(tokens, default=0),
        content_hash,
        chunkset_hash,
        source,
        {fault: n for fault, n in faults.items() if n},
    )


def contents_of_rows(
    stamp: EmbedderStamp,
    documents: Iterable[Sequence[Any]],
    chunks: Iterable[Sequence[Any]],
    entries: Iterable[Sequence[Any]],
) -> dict[str, HeldContent]:
    """What is held of each document of which there is a row, from the rows of a database.

    Args:
        stamp: whose vectors they are.
        documents: the columns of `DocumentRow`, then the checksum or None.
        chunks: document and chunk id, text, token, vector of shape (dimension,), checksum or None, then the columns of
            `Placement`.
        entries: document id, then the columns of `HeldEntry`.
    """
    documents_of: defaultdict[str, list[tuple[DocumentRow, bool | None]]] = defaultdict(list)
    for *values, checksum in documents:
        row = DocumentRow(*values)
        documents_of[row.document_id].append((row, _fits(checksum, row_checksum(row))))
    chunks_of: defaultdict[str, list[HeldChunk]] = defaultdict(list)
    for document_id, chunk_id, text, token, vector, checksum, *rest in chunks:
        org_id, source, ordinal, start, end, headings, *others = rest
        placement = Placement(org_id, source, ordinal, start, end, tuple(headings), *others)
        computed = chunk_checksum(stamp, document_id, chunk_id, text, token, vector)
        chunks_of[document_id].append(HeldChunk(chunk_id, placement, text, token, _fits(checksum, computed)))
    entries_of: defaultdict[str, list[HeldEntry]] = defaultdict(list)
    for document_id, *rest in entries:
        entries_of[document_id].append(HeldEntry(*rest))
    return {
        key: held_content(key, documents_of.get(key, ()), chunks_of.get(key, ()), entries_of.get(key, ()))
        for key in documents_of.keys() | chunks_of.keys() | entries_of.keys()
    }


def _fits(checksum: str | None, computed: str) -> bool | None:
    return None if checksum is None else checksum == computed


def _fault(is_sound: bool | None, otherwise: RowFault) -> RowFault | None:
    if is_sound is None:
        return RowFault.UNCHECKED
    return None if is_sound else otherwise


def _content_hash(
    head: tuple[str, ...], chunks: Sequence[tuple[str, Placement, str]], entries: Sequence[HeldEntry]
) -> str:
    return short_hash(_encoder.encode((head, sorted(chunks, key=_by_position), sorted(entries))))


def _by_position(chunk: tuple[str, Placement, str]) -> tuple[int, str]:
    return chunk[1].ordinal, chunk[0]
