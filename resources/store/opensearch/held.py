"""What an OpenSearch store holds of some documents, for deciding what a write has to do."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.content import chunk_checksum
from resources.store.opensearch.index import StoreIndex, embedder_key, vector_name
from resources.store.opensearch.queries import chosen, terms
from resources.store.opensearch.rows import Head, Version, row_key, vector_of
from resources.store.opensearch.snapshot import Row, Snapshot, snapshot

_FIELDS = ("document_id", "kind", "chunk_id", "generation", "embedder")
_DOCUMENTS_A_SEARCH = 1_000


@dataclass
class Held:
    """One document as it stands.

    `chunks` are the ids a reader sees, with our embedder's vectors; `strangers` the generations of rows that no reader
    sees, which dead or refused writers left.
    """

    head: Head | None = None
    version: Version | None = None
    chunks: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    def is_fenced(self, fencing_token: int) -> bool:
        """Whether a newer claim has written or removed the document."""
        return self.newest_token() > fencing_token

    def newest_token(self) -> int:
        """The token of the newest claim that has written or removed the document; 0: none has."""
        return self.head.fencing_token if self.head is not None else 0

    def is_left(self) -> bool:
        """Whether there is more of it than the mark of its removal."""
        stands = self.head is not None and not self.head.removed
        return stands or bool(self.strangers) or self.counts.total() > 0

    def is_whole(self) -> bool:
        """Whether the rows are there that the head speaks of. Somebody may have taken some away."""
        return self.head is None or (self.counts["chunk"], self.counts["entry"]) == (
            self.head.n_chunks,
            self.head.n_entries,
        )


class KeptVector(NamedTuple):
    """A vector that goes into a new row, and the checksum of the row it comes from.

    Where it does not fit that, the new row gets the same: a new checksum would vouch for a damaged vector.
    """

    vector: Vectors
    is_sound: bool
    checksum: str | None


def read_held(index: StoreIndex, document_ids: Sequence[str], stamp: EmbedderStamp) -> dict[str, Held]:
    """What is held of each document.

    Heads are read as they are, rows as searches see them. So rows may be missing for a moment after their head was
    written, and they are looked for again after a refresh before anything is concluded from that.
    """
    held = _read_once(index, document_ids, stamp)
    incomplete = [document_id for document_id, document in held.items() if not document.is_whole()]
    if incomplete:
        index.refresh()
        held |= _read_once(index, incomplete, stamp)
    return held


def read_heads(index: StoreIndex, document_ids: Sequence[str]) -> dict[str, tuple[Head, Version]]:
    """The heads of documents that have one, as they are at this moment, removed ones included."""
    if not document_ids:
        return {}
    keys = {row_key(document_id): document_id for document_id in document_ids}
    body = {"docs": [{"_id": key, "routing": key} for key in keys]}
    answer = index.cluster.ask(lambda driver: driver.mget(body=body, index=index.name))
    return {
        keys[found["_id"]]: (
            msgspec.convert(found["_source"], Head),
            Version(found["_seq_no"], found["_primary_term"]),
        )
        for found in answer["docs"]
        if found.get("found")
    }


def have_moved(index: StoreIndex, held: Mapping[str, Held]) -> bool:
    """Whether another writer has been at one of the documents since."""
    now = read_heads(index, list(held))
    return any(now.get(key, (None, None)) != (document.head, document.version) for key, document in held.items())


def read_vectors(
    index: StoreIndex, generations: Collection[str], stamp: EmbedderStamp
) -> dict[tuple[str, str], KeptVector]:
    """The vectors of some generations' chunks, by document and chunk id."""
    if not generations:
        return {}
    name = vector_name(stamp)
    query = chosen(terms(kind="chunk", generation=sorted(generations), embedder=embedder_key(stamp)))
    fields = ("document_id", "chunk_id", "text", "fencing_token", "checksum", name)
    with snapshot(index.cluster, index.name) as view:
        return {(row["document_id"], row["chunk_id"]): _kept(row, stamp) for row in view.all_rows(query, fields)}


def _kept(row: Row, stamp: EmbedderStamp) -> KeptVector:
    vector = vector_of(row, vector_name(stamp), stamp.dimension)
    is_sound = row.get("checksum") == chunk_checksum(
        stamp, row["document_id"], row["chunk_id"], row["text"], row["fencing_token"], vector
    )
    return KeptVector(vector, is_sound, row.get("checksum"))


def _read_once(index: StoreIndex, document_ids: Sequence[str], stamp: EmbedderStamp) -> dict[str, Held]:
    heads = read_heads(index, document_ids)
    held = {document_id: Held(*heads.get(document_id, (None, None))) for document_id in document_ids}
    with snapshot(index.cluster, index.name) as view:
        for start in range(0, len(document_ids), _DOCUMENTS_A_SEARCH):
            _add_rows(held, view, document_ids[start : start + _DOCUMENTS_A_SEARCH], stamp)
    return held


def _add_rows(held: Mapping[str, Held], view: Snapshot, document_ids: Sequence[str], stamp: EmbedderStamp) -> None:
    ids_of = defaultdict(set)
    query = chosen(terms(document_id=list(document_ids), kind=["chunk", "entry"]))
    for row in view.all_rows(query, _FIELDS):
        document = held[row["document_id"]]
        if document.head is None or row["generation"] != document.head.generation:
            document.strangers.add(row["generation"])
            continue
        document.counts[row["kind"]] += 1
        if row.get("embedder") == embedder_key(stamp):
            ids_of[row["document_id"]].add(row["chunk_id"])
    for document_id, chunk_ids in ids_of.items():
        held[document_id].chunks = chunk_ids
