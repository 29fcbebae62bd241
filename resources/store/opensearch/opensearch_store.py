"""The store kind `opensearch`: an index of its own in an OpenSearch cluster, searched by cosine similarity.

Many processes on many machines use it at once. There are no transactions: how a document is whole or absent all the
same stands in `writer`. If a call fails half way, some of its documents stand as given and the others as
before; the same call again is right.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.opensearch.address import OpenSearchConfig, check_config, index_name
from resources.store.opensearch.changes import Dead, Plan, changes_for, result_of, result_of_removal
from resources.store.opensearch.cluster import Cluster
from resources.store.opensearch.contents import held_ids_after, read_contents
from resources.store.opensearch.held import Held, have_moved, read_held
from resources.store.opensearch.index import FORMAT_VERSION, IndexMeta, StoreIndex, embedder_key
from resources.store.opensearch.nearest import LARGEST_K
from resources.store.opensearch.queries import chosen, terms
from resources.store.opensearch.rows import tombstone_of
from resources.store.opensearch.search import LegacyIndex, Wanted, merged, search_store
from resources.store.opensearch.snapshot import snapshot
from resources.store.opensearch.writer import Change, publish
from resources.store.storable_texts import storable_build
from resources.store.store import (
    BuildResult,
    DocumentBuild,
    HeldContent,
    HeldDocument,
    Hit,
    Removal,
    Store,
    StoreChangedError,
    StoreConfigError,
    StoreUnavailableError,
)
from resources.store.store_rules import check_builds, check_query, holds_vectors_of, refuse_twice

# The k-NN plugin's own limit.
_LARGEST_DIMENSION = 16_000
# Others may write the same documents or drop the store at the same moment, but not for ever.
_ATTEMPTS = 5


class OpenSearchStore(Store):
    """One index in an OpenSearch cluster with the k-NN plugin."""

    kind: ClassVar[str] = "opensearch"
    Config: ClassVar[type[msgspec.Struct]] = OpenSearchConfig
    config_is_shown: ClassVar[bool] = True

    def __init__(self, slug: str, stamp: EmbedderStamp, config: OpenSearchConfig) -> None:
        super().__init__(slug, stamp)
        check_config(slug, config)
        if stamp.dimension > _LARGEST_DIMENSION:
            raise StoreConfigError(slug, f"OpenSearch holds {_LARGEST_DIMENSION} numbers a vector; embedder: {stamp}.")
        cluster = Cluster(slug, config)
        self._config = config
        self._index = StoreIndex(cluster, index_name(slug), config.shards, config.replicas)
        self._legacy = (
            LegacyIndex(cluster, config.legacy_index, config.legacy_vector_field) if config.legacy_index else None
        )

    @classmethod
    def from_config(cls, slug: str, stamp: EmbedderStamp, config: OpenSearchConfig) -> "OpenSearchStore":
        """See `Store.from_config`."""
        return cls(slug, stamp, config)

    def held_chunks(self, document_ids: Sequence[str]) -> dict[str, set[str]]:
        """See `Store.held_chunks`."""
        meta = self._index.meta()
        if not document_ids or meta is None or not self._holds_our_vectors(meta):
            return {document_id: set() for document_id in document_ids}
        held = read_held(self._index, document_ids, self.stamp)
        return {document_id: document.chunks for document_id, document in held.items()}

    def write(self, builds: Sequence[DocumentBuild]) -> list[BuildResult]:
        """See `Store.write`.

        Raises:
            ValueError: a document cannot be held; it names the first. The others stand as given.
        """
        check_builds(builds)
        asked = {build.document_id: storable_build(build) for build in builds}

        def plan(held: Mapping[str, Held], dead: Dead) -> Plan:
            results = [result_of(asked[key], document) for key, document in held.items()]
            allowed = [asked[result.document_id] for result in results if not result.fenced]
            return results, changes_for(self._index, self.stamp, allowed, held, dead)

        return self._settled(list(asked), self._holds_our_vectors, plan)

    def remove(self, removals: Sequence[Removal]) -> list[BuildResult]:
        """See `Store.remove`."""
        refuse_twice(removal.document_id for removal in removals)
        asked = {removal.document_id: removal for removal in removals}

        def plan(held: Mapping[str, Held], _: Dead) -> Plan:
            results = [result_of_removal(asked[key], document) for key, document in held.items()]
            return results, [
                Change(head, document)
                for result in results
                for head, document in [(tombstone_of(asked[result.document_id]), held[result.document_id])]
                if not result.fenced and (head != document.head or document.strangers)
            ]

        return self._settled(list(asked), lambda _: True, plan)

    def remaining(self, document_ids: Sequence[str]) -> set[str]:
        """See `Store.remaining`."""
        if not document_ids or self._index.meta() is None:
            return set()
        self._index.refresh()  # rows are read as searches see them
        held = read_held(self._index, document_ids, self.stamp)
        return {document_id for document_id, document in held.items() if document.is_left()}

    def search(
        self,
        vector: Vectors,
        k: int,
        *,
        org_id: str,
        document_id: str | None = None,
        source: str | None = None,
    ) -> list[Hit]:
        """See `Store.search`."""
        check_query(self.stamp, vector)
        if k > LARGEST_K:
            raise ValueError(f"OpenSearch finds at most {LARGEST_K} chunks at once, not {k}.")
        meta = self._index.meta()
        is_ours = meta is not None and self._holds_our_vectors(meta)
        if k < 1:
            return []
        wanted = Wanted(vector, k, org_id, document_id, source)
        hits = search_store(self._index, self.stamp, self._config.search, wanted) if is_ours else []
        if self._legacy is not None:
            ours = self._index if meta is not None else None
            hits = merged(hits, self._legacy.search(ours, self.stamp, self._config.search, wanted), k)
        return hits

    def held_documents(self, after: str = "", limit: int = 10_000) -> list[HeldDocument]:
        """See `Store.held_documents`."""
        meta = self._index.meta()
        if meta is None:
            return []
        held: list[HeldDocument] = []
        with snapshot(self._index.cluster, self._index.name) as view:
            while len(held) < limit:
                heads = view.heads_after(held[-1].document_id if held else after, limit - len(held))
                counts = view.counts([head.generation for head in heads], embedder_key(meta.embedder))
                held += [
                    HeldDocument(
                        head.document_id,
                        head.chunkset_hash,
                        counts.get((head.generation, "chunk"), 0),
                        counts.get((head.generation, "entry"), 0),
                    )
                    for head in heads
                ]
                if not heads:
                    break
        return held

    def held_contents(self, document_ids: Sequence[str]) -> dict[str, HeldContent]:
        """See `Store.held_contents`."""
        meta = self._index.meta()
        if not document_ids or meta is None or not self._holds_our_vectors(meta):
            return {}
        self._index.refresh()
        with snapshot(self._index.cluster, self._index.name) as view:
            return read_contents(view, document_ids, self.stamp)

    def held_ids(self, after: str = "", limit: int = 10_000) -> list[str]:
        """See `Store.held_ids`."""
        if self._index.meta() is None:
            return []
        self._index.refresh()
        with snapshot(self._index.cluster, self._index.name) as view:
            return held_ids_after(view, after, limit)

    def drop(self) -> None:
        """See `Store.drop`. A legacy index is left alone."""
        if self._index.meta() is not None:
            self._index.drop()

    def _settled(
        self,
        document_ids: Sequence[str],
        is_ready: Callable[[IndexMeta], bool],
        plan: Callable[[Mapping[str, Held], Dead], Plan],
    ) -> list[BuildResult]:
        """What became of each document, once all heads are written that a plan wants to write.

        Another writer's head in between makes it begin again for that document with what stands then.
        """
        todo = list(document_ids)
        results: dict[str, BuildResult] = {}
        faults: list[ValueError] = []
        dead: dict[str, frozenset[str]] = {}
        for _ in range(_ATTEMPTS):
            if not todo:
                break
            meta = self._ready(is_ready)
            held = read_held(self._index, todo, self.stamp)
            try:
                planned, changes = plan(held, dead)
            except StoreChangedError:
                if not have_moved(self._index, held):
                    raise
                continue
            published = publish(self._index, meta, changes)
            results |= {result.document_id: result for result in planned}
            faults += published.bad.values()
            dead |= {c.head.document_id: c.dead | {c.head.generation} for c in changes if c.rows}
            todo = sorted(published.refused)
        if faults:
            raise faults[0]
        if todo:
            raise self._contended()
        return [results[document_id] for document_id in document_ids]

    def _ready(self, is_ready: Callable[[IndexMeta], bool]) -> IndexMeta:
        """What the index says it is, once it is ready to be written; what it lacks is made."""
        for _ in range(_ATTEMPTS):
            meta = self._index.meta()
            if meta is None:
                self._index.create(self.stamp)
            elif meta.format_version < FORMAT_VERSION:
                self._index.bring_up(meta)
            elif is_ready(meta):
                return meta
            else:
                self._index.adopt(meta, self.stamp)
        raise self._contended()

    def _holds_our_vectors(self, meta: IndexMeta) -> bool:
        return holds_vectors_of(self.stamp, meta.embedder, self._has_chunks, self.slug)

    def _has_chunks(self) -> bool:
        """Whether any document stands with a chunk."""
        standing = [*terms(kind="head", removed=False), {"range": {"n_chunks": {"gt": 0}}}]
        with snapshot(self._index.cluster, self._index.name) as view:
            return bool(view.rows({"size": 1, "query": chosen(standing)}))

    def _contended(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            self.slug, "others write the same documents, drop or take over the index again and again. Try again later."
        )
