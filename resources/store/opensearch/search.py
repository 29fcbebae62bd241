"""Search in an OpenSearch store: only rows of documents as they stand, and a legacy index's where we have none."""

from collections.abc import Mapping
from typing import Any

import msgspec

from resources.artifact_store.artifact import Place
from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.opensearch.cluster import Cluster
from resources.store.opensearch.held import read_heads
from resources.store.opensearch.index import StoreIndex, embedder_key, vector_name
from resources.store.opensearch.nearest import Nearest, Scored, VectorField
from resources.store.opensearch.queries import BY_DOCUMENT_AND_CHUNK, Body, terms
from resources.store.opensearch.rows import Head
from resources.store.opensearch.snapshot import Row, snapshot
from resources.store.store import Hit, StoreConfigError, StoreMismatchError


class Wanted(msgspec.Struct, frozen=True):
    """What is searched for, and how many."""

    vector: Vectors
    k: int
    org_id: str
    document_id: str | None = None
    source: str | None = None

    def filters(self) -> list[Body]:
        """What a row must be to be looked at."""
        return terms(org_id=self.org_id, document_id=self.document_id, source=self.source)


def search_store(index: StoreIndex, stamp: EmbedderStamp, mode: str, wanted: Wanted) -> list[Hit]:
    """The nearest chunks of documents as they stand at one moment.

    Rows of other generations than their document's are left out and the search is made again without them, until it
    finds none: they must not take the place of others. It ends, since the moment's rows do not change.
    """
    ours = terms(embedder=embedder_key(stamp))
    field = VectorField(vector_name(stamp), stamp.dimension, ours + terms(is_zero=False), ours + terms(is_zero=True))
    nearest = Nearest(index.cluster.store, mode, field)
    filters = [*terms(kind="chunk"), *wanted.filters()]
    strangers: set[str] = set()
    with snapshot(index.cluster, index.name) as view:
        while True:
            found = nearest.find(view, wanted.vector, wanted.k, filters, {"generation": strangers})
            heads = view.heads(scored.document_id for scored in found)
            unseen = {scored.row["generation"] for scored in found if not _stands(scored, heads)}
            if not unseen:
                return [_hit(scored, _described(scored.row, heads)) for scored in found]
            strangers |= unseen


class LegacyIndex:
    """An index another program filled, read beside ours and never written.

    It must have our names for what a reader needs: `document_id`, `org_id`, `source`, `source_uri`, `title`, `chunk_id`
    (keywords where they are filtered or sorted by), `text`, and vectors of the same embedder, which nobody can check.
    """

    def __init__(self, cluster: Cluster, name: str, field: str) -> None:
        self._cluster = cluster
        self._name = name
        self._field = field

    def search(self, index: StoreIndex | None, stamp: EmbedderStamp, mode: str, wanted: Wanted) -> list[Hit]:
        """The nearest chunks of documents that `index` knows nothing of: built or removed there, it has the say."""
        self._check(stamp)
        vectors = VectorField(self._field, stamp.dimension, order=BY_DOCUMENT_AND_CHUNK)
        nearest = Nearest(self._cluster.store, mode, vectors)
        usable = [{"exists": {"field": field}} for field in ("document_id", "chunk_id", self._field)]
        known: set[str] = set()
        with snapshot(self._cluster, self._name) as view:
            while True:
                found = nearest.find(
                    view, wanted.vector, wanted.k, [*usable, *wanted.filters()], {"document_id": known}
                )
                ids = sorted({scored.document_id for scored in found})
                replaced = set(read_heads(index, ids)) if index else set()
                if not replaced:
                    return [_hit(scored, scored.row) for scored in found]
                known |= replaced

    def _check(self, stamp: EmbedderStamp) -> None:
        """Refuse an index that is not there, or whose vectors cannot be the embedder's.

        An alias may stand for several indexes; all of them count.
        """
        answer = self._cluster.ask(lambda driver: driver.indices.get_mapping(index=self._name, ignore=404))
        if "error" in answer:
            raise StoreConfigError(
                self._cluster.store, f"there is no index '{self._name}'. Correct or remove the option 'legacy_index'."
            )
        for name, found in answer.items():
            field = found["mappings"].get("properties", {}).get(self._field, {})
            if field.get("type") != "knn_vector" or field.get("dimension") != stamp.dimension:
                raise StoreMismatchError(
                    self._cluster.store,
                    f"the legacy index '{name}' has no vectors of {stamp.dimension} numbers in its field "
                    f"'{self._field}', and {stamp} makes such. Correct 'legacy_vector_field' or the embedder, or "
                    "remove 'legacy_index'.",
                )


def merged(one: list[Hit], other: list[Hit], k: int) -> list[Hit]:
    """The best of both, best first."""
    return sorted([*one, *other], key=lambda hit: (-hit.score, hit.document_id, hit.chunk_id))[:k]


def _stands(scored: Scored, heads: Mapping[str, Head]) -> bool:
    head = heads.get(scored.document_id)
    return head is not None and head.generation == scored.row["generation"]


def _described(row: Row, heads: Mapping[str, Head]) -> Row:
    head = heads[row["document_id"]]
    return row | {"title": head.title, "source_uri": head.source_uri}


def _hit(scored: Scored, row: Row) -> Hit:
    text: Any = row.get("text", "")
    place = msgspec.convert(row["place"], Place) if "place" in row else Place(0, len(text))
    return Hit(
        -scored.distance + 0.0,
        scored.document_id,
        row.get("source_uri", ""),
        row.get("title", ""),
        scored.chunk_id,
        text,
        place,
    )
