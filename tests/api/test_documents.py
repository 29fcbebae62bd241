"""What the API shows of documents, stores and searches."""

import re
import threading
from pathlib import Path

import pytest

from ingest_assets.components import Components
from ingest_assets.settings import Settings
from resources.clock import utc_now
from resources.document_state.spend_book import Ceilings, Reservation, SpendTotals
from tests.api.conftest import TWO_STORES
from tests.api.served import Served
from tests.end_to_end.project import Project


def _all(served: Served, **filters: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    cursor = ""
    while True:
        page = served.client.get("/api/documents", params={"limit": 3, "cursor": cursor, **filters}).json()
        found += page["documents"]
        if page["nextCursor"] is None:
            return found
        cursor = page["nextCursor"]


def test_pages_hold_every_document_once(served: Served, samples: Project) -> None:
    """Going from page to page gives each document once, as many as the command line counts."""
    ids = [doc["documentId"] for doc in _all(served)]
    assert ids == sorted(set(ids))
    assert len(ids) == samples.json("status")["documents"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"status": "FAILED"}, {"broken-dry-dock-survey.pdf"}),
        ({"reason": "malformed"}, {"broken-dry-dock-survey.pdf"}),
        ({"text": "DRY-dock"}, {"broken-dry-dock-survey.pdf"}),
        ({"text": "%"}, set()),
        ({"text": "_"}, set()),
        ({"source": "elsewhere"}, set()),
        ({"state": "Stale"}, set()),
        ({"state": "Ingested", "store": "second", "status": "FAILED"}, set()),
    ],
)
def test_filters_choose(served: Served, filters: dict[str, object], names: set[str]) -> None:
    """Status, reason, source, state in a store, and a piece of the name narrow the list; counts agree with it."""
    found = _all(served, **filters)
    assert {str(doc["name"]) for doc in found} == names
    assert served.client.get("/api/documents/counts", params=filters).json()["total"] == len(found)


def test_a_document_stands_against_every_store(served: Served) -> None:
    """A record lists each store there is, with state, hash, time, run and what differs."""
    doc = next(d for d in _all(served) if d["lifecycle"] == "Ingested")
    shown = served.client.get(f"/api/documents/{doc['documentId']}").json()
    assert [store["storeId"] for store in shown["stores"]] == ["default", "second"]
    assert [store["storeName"] for store in shown["stores"]] == ["Default", "second"]
    for store in shown["stores"]:
        assert (store["state"], store["verdict"], store["staleParts"]) == ("Ingested", "current", [])
        assert store["chunksetHash"]
        assert store["lastPushAt"]
        assert store["lastRunId"] == shown["lastRunId"]


def test_an_etag_answers_for_a_record(served: Served) -> None:
    """With the ETag of a record that has not changed nothing is sent again."""
    doc = _all(served)[0]
    answer = served.client.get(f"/api/documents/{doc['documentId']}")
    assert answer.headers["etag"] == doc["version"]
    again = served.client.get(f"/api/documents/{doc['documentId']}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_history_tells_how_it_came_about(served: Served) -> None:
    """A document's history has its extraction and each store, with the run; a failed one the reason."""
    doc = next(d for d in _all(served) if d["lifecycle"] == "Ingested")
    changes = served.client.get(f"/api/documents/{doc['documentId']}/history").json()["changes"]
    assert {(c["part"], c["store"], c["state"]) for c in changes} == {
        ("extraction", "", "COMPLETED"),
        ("store", "default", "Ingested"),
        ("store", "second", "Ingested"),
    }
    assert {c["runId"] for c in changes} == {doc["lastRunId"]}
    failed = _all(served, status="FAILED")[0]
    changes = served.client.get(f"/api/documents/{failed['documentId']}/history").json()["changes"]
    assert [(c["state"], c["reason"]) for c in changes] == [("FAILED", "malformed")]


def test_chunks_come_in_order_with_their_place(served: Served) -> None:
    """The pages of a document's chunks are its chunks in their order; a page after it was extracted anew is refused."""
    doc = max(_all(served), key=lambda d: int(str(d["nChunks"])))
    path = f"/api/documents/{doc['documentId']}/chunks"
    whole = served.client.get(path).json()
    assert whole["total"] == len(whole["chunks"]) == doc["nChunks"]
    starts = [chunk["place"]["start"] for chunk in whole["chunks"]]
    assert starts == sorted(starts)
    found, cursor = [], ""
    while cursor is not None:
        page = served.client.get(path, params={"limit": 2, "cursor": cursor}).json()
        found += page["chunks"]
        cursor = page["nextCursor"]
    assert found == whole["chunks"]
    assert served.client.get(path, params={"cursor": f"{'0' * 32}.2"}).status_code == 409
    assert served.client.get(path, params={"cursor": "nonsense"}).status_code == 422


def test_search_finds_as_the_command_line_does(served: Served, samples: Project) -> None:
    """The same words find the same chunks with the same score."""
    query = "How often is the engine overhauled?"
    hits = served.client.post("/api/search", json={"query": query, "k": 3, "store": "second"}).json()["hits"]
    said = samples.json("search", query, "-k", "3", "--store", "second")
    assert [(hit["chunkId"], hit["score"]) for hit in hits] == [(hit["chunk_id"], hit["score"]) for hit in said]


def test_what_is_asked_wrongly_is_a_problem(served: Served) -> None:
    """What nobody knows is 404, what cannot be is 422; each says what to do and repeats nothing that was sent."""
    for answer, status in (
        (served.client.get("/api/documents/nope"), 404),
        (served.client.get("/api/documents", params={"status": "NOPE"}), 422),
        (served.client.get("/api/documents", params={"nope": "1"}), 422),
        (served.client.post("/api/search", json={"query": ""}), 422),
        (served.client.post("/api/search", json={"query": "a", "store": "nope"}), 404),
        (served.client.post("/api/search", content=b"{"), 422),
        (served.client.put("/api/stores"), 405),
        (served.client.get("/nowhere"), 404),
    ):
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status
        assert answer.json()["detail"]


def test_metrics_count_what_lists_count(served: Served) -> None:
    """Documents by phase, status and reason, links by store and state, jobs and workers, as Prometheus reads them."""
    text = served.client.get("/metrics").text
    assert 'ingest_runs_total{outcome="partial"} 1\n' in text
    assert 'ingest_runs_total{outcome="died"} 0\n' in text
    [persisting] = re.findall(r'ingest_stage_seconds_total\{stage="persisting"\} ([\d.]+)\n', text)
    assert float(persisting) > 0
    failed = 'ingest_documents{phase="extraction",status="FAILED",reason="malformed"} 1'
    assert failed in text
    n = served.client.get("/api/documents/counts", params={"state": "Ingested", "store": "second"}).json()["total"]
    assert f'ingest_links{{store="second",state="Ingested"}} {n}' in text
    assert f'ingestion_links_total{{state="Ingested"}} {2 * n}' in text
    assert 'ingestion_links_total{state="Failed"} 0' in text
    assert 'ingest_jobs{status="partial"} 1' in text
    assert 'ingest_workers{state="dead"} 0' in text
    assert "ingest_read_model_age_seconds 0" in text


async def test_metrics_count_what_models_cost(tmp_path: Path) -> None:
    """What was settled in the ledger, by whichever process, is counted in calls, tokens and dollars by model."""
    project = Project(tmp_path, TWO_STORES)
    async with Components(Settings(base=tmp_path)) as components:
        reservation = Reservation("r", "job", "worker", "a model", 500)
        await components.ledger.reserve(reservation, Ceilings(), utc_now())
        await components.ledger.settle("r", {"a model": SpendTotals(2, 30, 4, 1_500_000)})
    with Served(project) as server:
        text = server.client.get("/metrics").text
    assert 'ingest_spend_usd_total{model="a model"} 1.5' in text
    assert 'ingest_model_calls_total{model="a model"} 2' in text
    assert 'ingest_tokens_total{model="a model",direction="input"} 30' in text


def test_lists_are_right_while_runs_write(tmp_path: Path) -> None:
    """While a run changes every document, each page is answered, and what was there all the time comes exactly once."""
    project = Project(tmp_path, TWO_STORES.partition("[[sources]]")[0] + '[[sources]]\nname = "docs"\nuri = "docs"\n')
    for number in range(120):
        project.write(f"{number:03d}.md", f"Document {number} has words.")
    assert project.run("run").returncode == 0
    with Served(project) as server:
        for number in range(120):
            project.write(f"{number:03d}.md", f"Document {number} has other words.")
        run = threading.Thread(target=project.run, args=("run",))
        run.start()
        rounds = 0
        while run.is_alive() or rounds < 2:
            names = [str(doc["name"]) for doc in _all(server, text=".md")]
            assert names == sorted(names, key=lambda name: int(name[:3]))
            assert len(names) == 120
            rounds += 1
        run.join()
        assert {doc["lifecycle"] for doc in _all(server)} == {"Ingested"}


def test_a_stopped_server_says_so(tmp_path: Path) -> None:
    """Ctrl-C ends it at once and in order."""
    with Served(Project(tmp_path, TWO_STORES)) as server:
        assert server.client.get("/healthz").status_code == 200
        assert server.stop() == 0
