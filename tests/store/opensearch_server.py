"""A server of OpenSearch's protocol behind a proxy that can go wrong, and a way to look into it around the store."""

import json
import urllib.request
from typing import Any

from resources.embedder.hash_embedder import HashEmbedder
from resources.store.opensearch.address import OpenSearchConfig
from resources.store.opensearch.opensearch_store import OpenSearchStore
from tests.servers.exchange import Answer, Request
from tests.servers.fault_proxy import FaultProxy

STAMP = HashEmbedder.stamp()


class OpenSearchServer:
    """The server at `url`. It executes no k-NN query, so stores search by themselves unless they are told otherwise."""

    def __init__(self, url: str, proxy: FaultProxy) -> None:
        self.url = url
        self.proxy = proxy

    def store(self, slug: str = "test", **options: Any) -> OpenSearchStore:
        """A store of HashEmbedder's vectors, behind the proxy."""
        config = {"url": self.proxy.url, "search": "client", "attempts": 3} | options
        return OpenSearchStore(slug, STAMP, OpenSearchConfig(**config))

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask the server itself."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def rows(self, store: OpenSearchStore, kind: str = "") -> list[dict[str, Any]]:
        """All rows of a store, whether a reader sees them or not, with their ids and versions."""
        name = store._index.name
        self.ask("POST", f"/{name}/_refresh")
        query = {"term": {"kind": kind}} if kind else {"match_all": {}}
        body = {"size": 10_000, "query": query, "seq_no_primary_term": True}
        body["sort"] = [{"document_id": "asc"}, {"chunk_id": "asc"}]
        hits = self.ask("POST", f"/{name}/_search", body)["hits"]["hits"]
        return [hit["_source"] | {"id": hit["_id"], "seq_no": hit["_seq_no"]} for hit in hits]


def bulk_of(kind: str):
    """Requests that write rows of a kind: `head`, `chunk`."""
    return lambda request: "_bulk" in request.path and f'"kind":"{kind}"'.encode() in request.body


def path_has(part: str):
    """Requests to such a path."""
    return lambda request: part in request.path


def refused_items(status: int, kind: str, which: bytes = b""):
    """The server takes a bulk request, and refuses the rows in it that contain `which`."""

    def fault(request: Request, forward) -> Answer:
        lines = request.body.splitlines()
        error = {"type": kind, "reason": "made by the proxy"}
        items = [
            {"index": {"status": status, "error": error} if which in row else {"status": 201}} for row in lines[1::2]
        ]
        return json_answer({"errors": True, "items": items})

    return fault


def before(action):
    """Something happens before the request reaches the server."""

    def fault(request: Request, forward) -> Answer:
        action()
        return forward()

    return fault


def json_answer(body: object, status: int = 200) -> Answer:
    """An answer the server did not give."""
    return Answer(status, json.dumps(body).encode(), [("Content-Type", "application/json")])


class Recorder:
    """Takes the searches the server does not know, keeps their bodies, and answers with all the store's chunks.

    It judges nothing: what is asked for is compared with the documentation by the test, and what the store makes of the
    answer is the store's own work.
    """

    def __init__(self, server: OpenSearchServer, store: OpenSearchStore) -> None:
        self._rows = server.rows(store, "chunk")
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: Request, forward) -> Answer:
        """See `Fault`."""
        body = json.loads(request.body)
        self.bodies.append(body)
        hits = [{"_id": row["id"], "_score": 1.0, "_source": row} for row in self._rows]
        return json_answer({"timed_out": False, "hits": {"hits": hits[: body["size"]]}})


def is_vector_search(request: Request) -> bool:
    """Whether it is a search by a vector."""
    return "_search" in request.path and any(name in request.body for name in (b'"knn"', b'"script_score"'))
