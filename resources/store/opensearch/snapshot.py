"""A store's rows at one moment, by OpenSearch's point in time.

A document's rows share a shard, and a shard's snapshot holds all that was written before anything it holds: with a head
it holds the head's rows, until the same snapshot holds a later head.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from resources.store.opensearch.cluster import Cluster
from resources.store.opensearch.queries import BY_ROW, Body, chosen, counts_by_generation, terms
from resources.store.opensearch.rows import Head
from resources.store.store import StoreError

# The server's default limit for one answer is 10,000 rows; vectors and texts make them large.
_ROWS_A_PAGE = 1_000
_HEADS_A_PAGE = 1_000
_KEEP_ALIVE = "5m"

Row = dict[str, Any]


class Snapshot:
    """Answers questions about one moment. An answer is of all shards, or an error."""

    def __init__(self, cluster: Cluster, pit_id: str) -> None:
        self._cluster = cluster
        self._pit = {"id": pit_id, "keep_alive": _KEEP_ALIVE}

    def answer(self, body: Body) -> Row:
        """The answer to one search."""
        body = {"track_total_hits": False, **body, "pit": self._pit}
        answer: Row = self._cluster.ask(lambda driver: driver.search(body=body, allow_partial_search_results="false"))
        return answer

    def rows(self, body: Body) -> list[Row]:
        """The rows one search finds."""
        return [hit["_source"] for hit in self.answer(body)["hits"]["hits"]]

    def all_rows(
        self, query: Body, fields: Sequence[str] | None = None, order: Sequence[Body] = BY_ROW
    ) -> Iterator[Row]:
        """Every row of a query. No two rows may be equal in `order`: a page would begin behind both."""
        body: Body = {"size": _ROWS_A_PAGE, "query": query, "sort": list(order)}
        if fields is not None:
            body["_source"] = list(fields)
        while True:
            hits = self.answer(body)["hits"]["hits"]
            yield from (hit["_source"] for hit in hits)
            if len(hits) < _ROWS_A_PAGE:
                return
            body = body | {"search_after": hits[-1]["sort"]}

    def heads(self, document_ids: Iterable[str]) -> dict[str, Head]:
        """The heads of some documents, removed ones included."""
        ids = sorted(set(document_ids))
        found = {}
        for start in range(0, len(ids), _HEADS_A_PAGE):
            page = ids[start : start + _HEADS_A_PAGE]
            for row in self.rows({"size": len(page), "query": chosen(terms(kind="head", document_id=page))}):
                found[row["document_id"]] = msgspec.convert(row, Head)
        return found

    def heads_after(self, document_id: str, limit: int) -> list[Head]:
        """A page of the heads of documents that stand, by document id."""
        behind = {"range": {"document_id": {"gt": document_id}}}
        body = {
            "size": min(limit, _HEADS_A_PAGE),
            "query": chosen([*terms(kind="head", removed=False), behind]),
            "sort": [{"document_id": "asc"}],
        }
        return [msgspec.convert(row, Head) for row in self.rows(body)]

    def counts(self, generations: Sequence[str], embedder: str) -> dict[tuple[str, str], int]:
        """How many rows of each kind some generations have, at most a page of heads' worth.

        A chunk counts if searches find it, by a vector of this embedder.
        """
        if not generations:
            return {}
        buckets = self.answer(counts_by_generation(generations, embedder))["aggregations"]["counts"]["buckets"]
        return {(bucket["key"]["generation"], bucket["key"]["kind"]): bucket["doc_count"] for bucket in buckets}


@contextmanager
def snapshot(cluster: Cluster, index: str) -> Iterator[Snapshot]:
    """A view of the index at one moment.

    Raises:
        StoreChangedError: there is no such index.
    """
    opened = cluster.ask(
        lambda driver: driver.create_pit(
            index=index, params={"keep_alive": _KEEP_ALIVE, "allow_partial_pit_creation": "false"}
        )
    )
    try:
        yield Snapshot(cluster, opened["pit_id"])
    finally:
        close(cluster, opened["pit_id"])


def close(cluster: Cluster, pit_id: str) -> None:
    """Let the server forget a snapshot; if it does not hear of it, it does so by itself after a while."""
    try:
        cluster.ask(lambda driver: driver.delete_pit(body={"pit_id": [pit_id]}, ignore=404))
    except StoreError:
        return
