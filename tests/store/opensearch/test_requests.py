"""What the OpenSearch store asks for, field by field, where the test server cannot execute it.

The documented forms are those of OpenSearch 2.x and later: "k-NN index", "Exact k-NN with scoring script" (scoring
script filter) and "Efficient k-NN filtering". That a real server ranks as documented is not tested here.
"""

import json
from urllib.parse import unquote

import msgspec
import numpy as np
import pytest

from resources.embedder.embedder import EmbedderStamp
from resources.store.opensearch.address import OpenSearchConfig
from resources.store.opensearch.opensearch_store import OpenSearchStore
from resources.store.store import StoreUnavailableError
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import cut_before
from tests.store.contract import EMBEDDER, build, search
from tests.store.opensearch_server import OpenSearchServer, Recorder, before, bulk_of, is_vector_search, path_has


@pytest.fixture
def server(url, prefix):
    """A server whose proxy may be left with recorders that have met fewer requests than they could."""
    with FaultProxy(url) as proxy:
        yield OpenSearchServer(url, proxy)


def recorded(server, store, n_searches=1):
    """Let the store's next vector searches be taken down."""
    recorder = Recorder(server, store)
    server.proxy.inject(recorder, is_vector_search, n_searches)
    return recorder


def filters(server, store, **more):
    """The filter the store must send: its tenant, its own vectors, and nothing a reader does not see."""
    [row] = server.rows(store, "chunk")[:1]
    terms = {"kind": "chunk", "org_id": "default", **more, "embedder": row["embedder"], "is_zero": False}
    return {"bool": {"filter": [{"term": {name: value}} for name, value in terms.items()]}}


def field_of(server, store):
    """The field that holds the vectors."""
    [field] = [name for name in server.rows(store, "chunk")[0] if name.startswith("vector_")]
    return field


def test_exact_search(server):
    """The scoring script filters first and then looks at every vector: `script_score` around a filtered query."""
    store = server.store(search="exact")
    store.write([build("a", ["one", "two"]), build("b", ["three"])])
    recorder = recorded(server, store)
    hits = search(store, "two", 3, source="docs")
    [body] = recorder.bodies
    assert set(body.pop("pit")) == {"id", "keep_alive"}
    vector = body["query"]["script_score"]["script"]["params"].pop("query_value")
    assert np.array(vector, np.float32).tobytes() == EMBEDDER.embed(["two"])[0].tobytes()
    assert body == {
        "size": 3,
        "track_total_hits": False,
        "query": {
            "script_score": {
                "query": filters(server, store, source="docs"),
                "script": {
                    "source": "knn_score",
                    "lang": "knn",
                    "params": {"field": field_of(server, store), "space_type": "cosinesimil"},
                },
            }
        },
        "sort": [{"_score": "desc"}, {"document_id": "asc"}, {"chunk_id": "asc"}],
    }
    assert hits[0].text == "two"
    scores = EMBEDDER.embed([hit.text for hit in hits]) @ EMBEDDER.embed(["two"])[0]
    assert [hit.score for hit in hits] == pytest.approx(list(scores), abs=1e-6)


def test_approximate_search(server):
    """The filter is inside the `knn` query, so that it is applied while the graph is walked and k results are found."""
    store = server.store(search="approximate")
    store.write([build("a", ["one", "two"]), build("b", ["three"])])
    recorder = recorded(server, store)
    hits = search(store, "two", 3, document_id="a")
    [body] = recorder.bodies
    assert set(body.pop("pit")) == {"id", "keep_alive"}
    vector = body["query"]["knn"][field_of(server, store)].pop("vector")
    assert np.array(vector, np.float32).tobytes() == EMBEDDER.embed(["two"])[0].tobytes()
    assert body == {
        "size": 3,
        "track_total_hits": False,
        "query": {
            "knn": {field_of(server, store): {"k": 3, "filter": filters(server, store, document_id="a")}},
        },
    }
    assert hits[0].text == "two"


def test_index(server):
    """The index is made with the documented k-NN setting and field, and the alias that writes go through."""
    bodies = []

    def record(request, forward):
        bodies.append((request.method, request.path, json.loads(request.body)))
        return forward()

    server.proxy.inject(record, lambda request: request.method == "PUT")
    store = OpenSearchStore(
        "test", EmbedderStamp("e", "1", 3), OpenSearchConfig(url=server.proxy.url, shards=2, replicas=0)
    )
    store.write([build("a", [])])
    [(method, path, body)] = bodies
    assert (method, path) == ("PUT", f"/{store._index.name}")
    assert body["settings"] == {"index": {"knn": True, "number_of_shards": 2, "number_of_replicas": 0}}
    assert body["aliases"] == {store._index.writing_alias: {}}
    assert body["mappings"]["dynamic"] == "strict"
    [field] = [found for found in body["mappings"]["properties"].values() if found["type"] == "knn_vector"]
    assert field == {
        "type": "knn_vector",
        "dimension": 3,
        "method": {"name": "hnsw", "space_type": "cosinesimil", "engine": "lucene"},
    }


def test_bulk_requests(server):
    """Rows go through the alias and are not shown by themselves; heads are, and all before them on their shard."""
    seen = []

    def record(request, forward):
        seen.append((request.path, [json.loads(line) for line in request.body.splitlines()]))
        return forward()

    server.proxy.inject(record, path_has("_bulk"), 4)
    store = server.store()
    store.write([build("a", ["one"])])
    store.write([build("a", ["two"], token=2)])
    for (url, lines), refresh in zip(seen, ("false", "true", "false", "true"), strict=True):
        path, _, query = url.partition("?")
        assert unquote(path) == f"/{store._index.writing_alias}/_bulk"
        assert set(query.split("&")) == {f"refresh={refresh}", "require_alias=true"}
        [routing] = {next(iter(line.values()))["routing"] for line in lines[::2]}
        assert all(row["document_id"] == "a" for row in lines[1::2])
    (_, [first, _]), (_, [second, _]) = seen[1], seen[3]
    assert set(first) == {"create"}
    assert first["create"]["_id"] == second["index"]["_id"] == routing
    assert set(second["index"]) == {"_id", "routing", "if_seq_no", "if_primary_term"}


def test_no_zero_vector_is_sent(server):
    """OpenSearch refuses zero vectors under cosine similarity: such rows have none, and such a query is none."""
    store = server.store(search="exact")
    given = build("a", ["one"])
    zero = {given.chunks[0].chunk_id: np.zeros(64, np.float32)}
    store.write([msgspec.structs.replace(given, vectors=zero)])
    [row] = server.rows(store, "chunk")
    assert row["is_zero"]
    assert not any(name.startswith("vector_") for name in row)
    # The server would refuse a vector search; none is made.
    assert [hit.score for hit in store.search(np.zeros(64, np.float32), 5, org_id="default")] == [0]
    recorder = recorded(server, store)
    recorder._rows = []
    assert [(hit.text, hit.score) for hit in search(store, "one")] == [("one", 0)]


def test_rows_nobody_sees_are_left_out_of_the_next_search(server):
    """Rows of another generation among the nearest: the search is made again, with their generation excluded."""
    store = server.store(search="exact")
    store.write([build("a", ["one"])])
    server.proxy.inject(cut_before(), bulk_of("head"))
    with pytest.raises(StoreUnavailableError):
        store.write([build("a", ["two"], token=2)])
    recorder = recorded(server, store, 2)

    def keep_the_standing():
        recorder._rows = [row for row in recorder._rows if row["text"] == "one"]

    [stranger] = {row["generation"] for row in recorder._rows if row["text"] == "two"}
    # Between the searches the heads are asked for: a search for heads in the same snapshot.
    server.proxy.inject(before(keep_the_standing), lambda request: b'"head"' in request.body)
    assert [hit.text for hit in search(store, "one")] == ["one"]
    first, second = recorder.bodies
    assert "must_not" not in first["query"]["script_score"]["query"]["bool"]
    assert second["query"]["script_score"]["query"]["bool"]["must_not"] == [{"terms": {"generation": [stranger]}}]
    assert first["pit"] == second["pit"]


def test_pages_have_an_order_without_ties(server):
    """A page begins behind the last row of the one before: two rows that are equal in its order would be lost."""
    store = server.store()
    bodies = []

    def record(request, forward):
        bodies.append(json.loads(request.body))
        return forward()

    server.proxy.inject(record, lambda request: request.path.startswith("/_search?"), 100)
    store.write([build("a", [f"text {i}" for i in range(600)])])
    store.write([build("a", [f"text {i}" for i in range(1, 600)])])
    search(store, "one")
    pages = [body["sort"] for body in bodies if "search_after" in body]
    assert pages
    assert all(order == [{"row": "asc"}] for order in pages)
    assert len({row["row"] for row in server.rows(store) if row["kind"] != "head"}) == 2 * 599


def test_answers_of_a_part_of_the_shards_are_refused(server):
    """A shard that does not answer is an error, never fewer results; and one moment is asked for, and let go."""
    store = server.store()
    store.write([build("a", ["one"])])
    paths = []

    def record(request, forward):
        paths.append((request.method, request.path))
        return forward()

    server.proxy.inject(record, lambda request: "_search" in request.path, 100)
    search(store, "one")
    opened, *searches, closed = paths
    assert opened[0] == "POST"
    assert "allow_partial_pit_creation=false" in opened[1]
    assert searches
    assert all("allow_partial_search_results=false" in path for _, path in searches)
    assert closed == ("DELETE", "/_search/point_in_time")


def test_snapshot_that_is_not_let_go(server):
    """The server forgets a snapshot by itself: failing to let it go fails no search."""
    store = server.store(attempts=1)
    store.write([build("a", ["one"])])
    server.proxy.inject(cut_before(), lambda request: request.method == "DELETE" and path_has("point_in_time")(request))
    assert [hit.text for hit in search(store, "one")] == ["one"]
    assert server.proxy.pending() == 0
