"""Rows as the OpenSearch store writes and reads them: a document's head, its chunks and its entries."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from resources.artifact_store.artifact import Entry, short_hash
from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.content import chunk_checksum, row_checksum
from resources.store.opensearch.cluster import Action, encoded
from resources.store.opensearch.index import embedder_key, vector_name
from resources.store.store import DocumentBuild, Removal


class Head(msgspec.Struct, frozen=True):
    """A document's own row: the one thing that says which rows are the document.

    `generation` names the rows of one write; rows of another one are nobody's. A removed document keeps its head, and
    with it the token that refuses late writers. `rows_hash` is over all that chunks and entries say, `checksum` over
    the head's other fields.
    """

    document_id: str
    fencing_token: int
    removed: bool = False
    generation: str = ""
    embedder: str = ""
    org_id: str = ""
    source: str = ""
    source_uri: str = ""
    title: str = ""
    chunkset_hash: str = ""
    rows_hash: str = ""
    n_chunks: int = 0
    n_entries: int = 0
    checksum: str = ""

    def checked(self) -> "Head":
        """The head with the checksum it should have."""
        return msgspec.structs.replace(self, checksum=row_checksum(msgspec.structs.astuple(self)[:-1]))


class Version(msgspec.Struct, frozen=True):
    """Which write of a row was seen, for replacing that one and no other."""

    seq_no: int
    primary_term: int


def row_key(document_id: str) -> str:
    """The id of a document's head, and what puts all its rows on one shard."""
    return short_hash(document_id)


def new_generation() -> str:
    """A name no other write has, not even a second try of the same one: its rows are never mistaken for others'."""
    return uuid.uuid4().hex


def head_of(build: DocumentBuild, generation: str, stamp: EmbedderStamp) -> Head:
    """The head of a document that stands as given."""
    return Head(
        document_id=build.document_id,
        fencing_token=build.fencing_token,
        generation=generation,
        embedder=embedder_key(stamp),
        org_id=build.org_id,
        source=build.source,
        source_uri=build.source_uri,
        title=build.title,
        chunkset_hash=build.chunkset_hash,
        rows_hash=_rows_hash(build),
        n_chunks=len(build.chunks),
        n_entries=len(_entries(build)),
    ).checked()


def tombstone_of(removal: Removal) -> Head:
    """The head of a document that was removed."""
    return Head(document_id=removal.document_id, fencing_token=removal.fencing_token, removed=True).checked()


def head_action(head: Head, seen: Version | None) -> Action:
    """Write a head in the place of the one that was seen, or where none was."""
    where: dict[str, Any] = {"_id": row_key(head.document_id), "routing": row_key(head.document_id)}
    if seen is None:
        what = {"create": where}
    else:
        what = {"index": where | {"if_seq_no": seen.seq_no, "if_primary_term": seen.primary_term}}
    return Action(encoded(what), encoded({"kind": "head"} | msgspec.to_builtins(head)))


def row_actions(
    build: DocumentBuild,
    generation: str,
    stamp: EmbedderStamp,
    vectors: Mapping[str, Vectors],
    unsound: Mapping[str, str | None],
) -> Iterator[Action]:
    """Write every chunk and entry of a document.

    Args:
        build: the document.
        generation: the name of this write.
        stamp: whose vectors they are.
        vectors: each chunk's, by chunk id.
        unsound: the checksums, or None, that chunks keep whose vector nobody can vouch for.
    """
    base = {
        "document_id": build.document_id,
        "org_id": build.org_id,
        "source": build.source,
        "generation": generation,
        "fencing_token": build.fencing_token,
    }
    for ordinal, chunk in enumerate(build.chunks):
        vector = vectors[chunk.chunk_id]
        row = base | {"kind": "chunk", "chunk_id": chunk.chunk_id, "ordinal": ordinal, "text": chunk.text}
        row |= {"place": chunk.place, "embedder": embedder_key(stamp), "is_zero": not vector.any()}
        if chunk.chunk_id in unsound:
            row["checksum"] = unsound[chunk.chunk_id]
        else:
            row["checksum"] = chunk_checksum(
                stamp, build.document_id, chunk.chunk_id, chunk.text, build.fencing_token, vector
            )
        if vector.any():
            row[vector_name(stamp)] = vector.tolist()
        yield _row_action(build.document_id, generation, chunk.chunk_id, row)
    for entry_id, entry in _entries(build).items():
        row = base | {"kind": "entry", "entry_id": entry_id, "chunk_id": entry.chunk_id}
        row |= {"entry_kind": entry.kind, "text": entry.text}
        yield _row_action(build.document_id, generation, f"entry {entry_id}", row)


def vector_of(row: Mapping[str, Any], field: str, dimension: int) -> Vectors:
    """A row's vector as it was given."""
    found = row.get(field)
    return np.zeros(dimension, np.float32) if found is None else np.array(found, np.float32)


def _row_action(document_id: str, generation: str, name: str, row: Mapping[str, Any]) -> Action:
    row_id = short_hash(document_id, generation, name)
    where = {"_id": row_id, "routing": row_key(document_id)}
    return Action(encoded({"index": where}), encoded({"row": row_id, **row}))


def _entries(build: DocumentBuild) -> dict[str, Entry]:
    return {entry.entry_id: entry for entry in build.entries}


def _rows_hash(build: DocumentBuild) -> str:
    return short_hash(encoded([build.org_id, build.source, list(build.chunks), list(_entries(build).values())]))
