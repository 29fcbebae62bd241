"""A store's index: its mapping, what it says it is, and who may make, take over and drop it."""

import uuid
from typing import Any

import msgspec
from opensearchpy.exceptions import RequestError

from resources.artifact_store.artifact import short_hash
from resources.embedder.embedder import EmbedderStamp
from resources.store.opensearch.cluster import Cluster
from resources.store.store import StoreCorruptError
from resources.store.store_rules import check_format

# The second version added the checksums; the first is brought up by the first write.
FORMAT_VERSION = 2

_TEXT = {"type": "text", "index": False}
_KEYWORD = {"type": "keyword"}
# Kept, never searched for, of any length.
_KEPT = {"type": "keyword", "index": False, "doc_values": False}

# Heads, chunks and entries are rows of one index, so that they share a shard and its snapshots: a reader that sees a
# head sees the rows written before it. `row` is the row's id, which itself cannot be sorted by.
_PROPERTIES: dict[str, Any] = {
    "kind": _KEYWORD,
    "row": _KEYWORD,
    "document_id": _KEYWORD,
    "org_id": _KEYWORD,
    "source": _KEYWORD,
    "generation": _KEYWORD,
    "fencing_token": {"type": "long"},
    # Of heads and chunks.
    "checksum": _KEPT,
    # Heads.
    "source_uri": _KEPT,
    "title": _TEXT,
    "chunkset_hash": _KEPT,
    "rows_hash": _KEPT,
    "n_chunks": {"type": "integer"},
    "n_entries": {"type": "integer"},
    "removed": {"type": "boolean"},
    # Chunks; those of a zero vector have no vector, since OpenSearch refuses one under cosine similarity.
    "chunk_id": _KEYWORD,
    "ordinal": {"type": "integer"},
    "place": {"type": "object", "enabled": False},
    "text": _TEXT,
    "embedder": _KEYWORD,
    "is_zero": {"type": "boolean"},
    # Entries.
    "entry_id": _KEPT,
    "entry_kind": _KEYWORD,
}


class IndexMeta(msgspec.Struct, frozen=True):
    """What the mapping's `_meta` says. `made` differs after a drop."""

    format_version: int
    store: str
    made: str
    embedder: EmbedderStamp


class StoreIndex:
    """The index of one store. Rows are written through an alias that lives and dies with it."""

    def __init__(self, cluster: Cluster, name: str, shards: int, replicas: int) -> None:
        self.cluster = cluster
        self.name = name
        # No store's name has this character, so the alias is no other store's index.
        self.writing_alias = f"{name}~writing"
        self._settings = {"index": {"knn": True, "number_of_shards": shards, "number_of_replicas": replicas}}

    def meta(self) -> IndexMeta | None:
        """What the index says it is; None if there is none.

        Raises:
            StoreTooNewError: a newer program made it.
            StoreCorruptError: another program did, or it is another store's.
        """
        answer = self.cluster.ask(lambda driver: driver.indices.get_mapping(index=self.name, ignore=404))
        if self.name not in answer:
            return None
        found = answer[self.name]["mappings"].get("_meta", {})
        version = found.get("format_version")
        if isinstance(version, int):
            check_format(self.cluster.store, f"its index '{self.name}'", version, FORMAT_VERSION)
        try:
            meta = msgspec.convert(found, IndexMeta)
        except msgspec.ValidationError as error:
            raise self._not_ours("was not made by this program") from error
        if meta.store != self.cluster.store:
            raise self._not_ours(f"is store '{meta.store}'")
        return meta

    def create(self, stamp: EmbedderStamp) -> None:
        """Make the index; somebody else may have been faster."""
        meta = IndexMeta(FORMAT_VERSION, self.cluster.store, uuid.uuid4().hex, stamp)
        properties = _PROPERTIES | vector_field(stamp)
        mappings = {"dynamic": "strict", "_meta": msgspec.to_builtins(meta), "properties": properties}
        body = {"settings": self._settings, "mappings": mappings, "aliases": {self.writing_alias: {}}}

        def create(driver: Any) -> None:
            try:
                driver.indices.create(index=self.name, body=body)
            except RequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise

        self.cluster.ask(create)

    def adopt(self, meta: IndexMeta, stamp: EmbedderStamp) -> None:
        """Make an index without vectors the embedder's. The heads of removed documents stay, with their tokens."""
        adopted = msgspec.structs.replace(meta, embedder=stamp)
        body = {"_meta": msgspec.to_builtins(adopted), "properties": vector_field(stamp)}
        self.cluster.ask(lambda driver: driver.indices.put_mapping(index=self.name, body=body))

    def bring_up(self, meta: IndexMeta) -> None:
        """Give an index of an older version what it lacks. Of its rows nobody knows whether they are as written."""
        body = {
            "_meta": msgspec.to_builtins(msgspec.structs.replace(meta, format_version=FORMAT_VERSION)),
            "properties": {"checksum": _PROPERTIES["checksum"]},
        }
        self.cluster.ask(lambda driver: driver.indices.put_mapping(index=self.name, body=body))

    def refresh(self) -> None:
        """Let searches see what was written until now."""
        self.cluster.ask(lambda driver: driver.indices.refresh(index=self.name, ignore=404))

    def drop(self) -> None:
        """Remove the index and all it holds."""
        self.cluster.ask(lambda driver: driver.indices.delete(index=self.name, ignore=404))

    def _not_ours(self, what: str) -> StoreCorruptError:
        return StoreCorruptError(
            self.cluster.store,
            f"the index '{self.name}' {what}. Set INGEST_INDEX_PREFIX or the store's slug to something else, or remove "
            "the index.",
        )


def embedder_key(stamp: EmbedderStamp) -> str:
    """A short name of the embedder, for rows and fields."""
    return short_hash(stamp.name, stamp.version, str(stamp.dimension))[:12]


def vector_name(stamp: EmbedderStamp) -> str:
    """The field of the embedder's vectors. Each embedder has its own, so that vectors of two are never compared."""
    return f"vector_{embedder_key(stamp)}"


def vector_field(stamp: EmbedderStamp) -> dict[str, Any]:
    """The mapping of the embedder's vectors, as documented for OpenSearch 2.x and later."""
    method = {"name": "hnsw", "space_type": "cosinesimil", "engine": "lucene"}
    return {vector_name(stamp): {"type": "knn_vector", "dimension": stamp.dimension, "method": method}}
