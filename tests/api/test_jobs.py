"""Work that is asked for over HTTP: done by another process, once, and told truthfully."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.api.served import PATIENCE, Served
from tests.end_to_end.project import Project

CONFIG = """
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "default"
"""
SECOND = '[[stores]]\nslug = "second"\n'
SLOW = "import time\ndef split(text):\n    time.sleep(0.5)\n    return [text]\n"


def _prepared(root: Path) -> Project:
    """Three documents, one of them broken, ingested into one store; then a second store was added."""
    project = Project(root, CONFIG)
    for name in ("a", "b"):
        project.write(f"{name}.md", f"The document {name} has words.")
    project.write("broken.pdf", "%PDF-1.4 this is none")
    project.run("run")
    project.configure(CONFIG + SECOND)
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Such a project, for one test."""
    return _prepared(tmp_path)


@pytest.fixture
def server(project: Project) -> Iterator[Served]:
    """That project, served."""
    with Served(project) as server:
        yield server


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Such a project, served to tests that have nothing done."""
    with Served(_prepared(tmp_path_factory.mktemp("untouched"))) as server:
        yield server


def _ids(server: Served) -> dict[str, str]:
    documents = server.client.get("/api/documents").json()["documents"]
    return {doc["name"]: doc["documentId"] for doc in documents}


def _states(server: Served, document_id: str) -> dict[str, str | None]:
    stores = server.client.get(f"/api/documents/{document_id}").json()["stores"]
    return {store["storeId"]: store["state"] for store in stores}


def _ended(server: Served, job_id: str) -> dict[str, object]:
    return _once_it_has(server, job_id, "completedAt")


def _once_it_has(server: Served, job_id: str, what: str) -> dict[str, object]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        job: dict[str, object] = server.client.get(f"/api/ingestion-jobs/{job_id}").json()
        if job[what]:
            return job
        time.sleep(0.1)
    raise AssertionError(job)


class SlowProject(Project):
    """A project whose documents can be made to take half a second each."""

    def __init__(self, root: Path, n_documents: int) -> None:
        super().__init__(root)
        (root / "slow_splitter.py").write_text(SLOW)
        self.environment["PYTHONPATH"] = str(root)
        for number in range(n_documents):
            self.write(f"{number:03d}.md", f"Document {number}.")
        self.chunk_with("markdown")
        assert self.run("run").returncode == 0

    def chunk_with(self, splitter: str) -> None:
        """Every document is stale from now on."""
        self.configure(f'{CONFIG}[chunking]\nsplitter = "{splitter}"\n[runs]\nparser_workers = 1\ngroup = 2\n')


def test_one_document_into_one_store(server: Served) -> None:
    """Asking for a document in one store builds it there and nowhere else, by a Dagster run of its own."""
    ids = _ids(server)
    answer = server.client.post(f"/api/ingestion/{ids['a.md']}", json={"storeSlug": "second"})
    assert answer.status_code == 202
    job = _ended(server, answer.json()["job"]["jobId"])
    assert (job["status"], job["nRequested"], job["nSucceeded"]) == ("succeeded", 1, 1)
    assert len(job["runIds"]) == 1
    assert answer.headers["location"] == f"/api/ingestion-jobs/{job['jobId']}"
    assert _states(server, ids["a.md"]) == {"default": "Ingested", "second": "Ingested"}
    assert _states(server, ids["b.md"]) == {"default": "Ingested", "second": None}


@pytest.mark.parametrize(("mode", "renews"), [("chosen", True), ("renewed", True), ("stale", True), ("named", False)])
def test_what_a_changed_setting_made_stale(tmp_path: Path, mode: str, renews: bool) -> None:
    """Who asks for documents has them as the configuration has them now, extraction included; unless he says not to."""
    project = Project(tmp_path, CONFIG)
    project.write("a.md", "The document a has words.")
    assert project.run("run").returncode == 0
    project.configure(f"{CONFIG}[chunking]\nsize = 500\n{SECOND}")
    assert project.run("plan", "--apply").returncode == 0
    with Served(project) as server:
        wanted = {"filter": {}, "stores": ["default"], "mode": mode}
        estimate = server.client.post("/api/ingestion-jobs/estimate", json=wanted).json()
        assert (estimate["nDue"], estimate["nToExtract"]) == (1, renews)
        job = server.client.post("/api/ingestion-jobs", json=wanted).json()["job"]
        assert _ended(server, job["jobId"])["nSucceeded"] == renews
        [document] = server.client.get("/api/documents").json()["documents"]
        states = [(store["state"], store["verdict"]) for store in document["stores"]]
        assert states == [("Ingested", "current") if renews else ("Stale", "stale"), (None, "missing")]


def test_a_setting_that_is_back_leaves_nothing_stale(tmp_path: Path) -> None:
    """What is stale by its mark alone is current again once somebody asks for it, without work."""
    project = Project(tmp_path, CONFIG)
    project.write("a.md", "The document a has words.")
    assert project.run("run").returncode == 0
    project.configure(f"{CONFIG}[chunking]\nsize = 500\n")
    assert project.run("plan", "--apply").returncode == 0
    project.configure(CONFIG)
    with Served(project) as server:
        document = _ids(server)["a.md"]
        assert _states(server, document) == {"default": "Stale"}
        job = server.client.post(f"/api/ingestion/{document}").json()["job"]
        assert _ended(server, job["jobId"])["nUnchanged"] == 1
        assert _states(server, document) == {"default": "Ingested"}


def test_a_filter_chooses_and_results_are_told(server: Served) -> None:
    """A job over a filter does what passes it; each document's outcome and reason can be read, as events too."""
    wanted = {"filter": {"status": ["FAILED"]}, "mode": "failed"}
    job_id = server.client.post("/api/ingestion-jobs", json=wanted).json()["job"]["jobId"]
    with server.client.stream("GET", f"/api/ingestion-jobs/{job_id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in stream.iter_lines() if line]
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert names[0] == "stage"
    assert names[-1] == "end"
    [outcome] = [event for name, event in zip(names, events, strict=True) if name == "outcome"]
    assert (outcome["name"], outcome["outcome"], outcome["reason"]) == ("broken.pdf", "failed", "malformed")
    assert events[-1]["status"] == "failed"
    page = server.client.get(f"/api/ingestion-jobs/{job_id}/results").json()
    assert (page["results"], page["nextCursor"]) == ([outcome], None)
    assert server.client.get("/api/ingestion-jobs").json()["jobs"][0]["jobId"] == job_id


def test_nothing_to_do_is_no_job(untouched: Served) -> None:
    """A request that no document fits makes no job and is no error."""
    answer = untouched.client.post("/api/ingestion-jobs", json={"filter": {"text": "nowhere"}})
    assert (answer.status_code, answer.json()) == (200, {"job": None, "nBusy": 0})


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"documentIds": ["nope"]}, 404),
        ({"documentIds": [], "filter": {}}, 422),
        ({}, 422),
        ({"filter": {}, "stores": ["nope"]}, 404),
        ({"filter": {}, "mode": "nope"}, 422),
    ],
)
def test_what_cannot_be_is_refused_before_it_begins(untouched: Served, wanted: dict[str, object], status: int) -> None:
    """An unknown document, store or mode, or documents named twice or not at all: nothing is begun."""
    before = len(untouched.client.get("/api/ingestion-jobs").json()["jobs"])
    assert untouched.client.post("/api/ingestion-jobs", json=wanted).status_code == status
    assert len(untouched.client.get("/api/ingestion-jobs").json()["jobs"]) == before


def test_a_repeated_request_is_one_job(project: Project, server: Served) -> None:
    """With one Idempotency-Key, requests that come at once, at two servers, and later again, are one job, done once."""
    ids = _ids(server)
    headers = {"Idempotency-Key": "once"}
    wanted = {"documentIds": [ids["a.md"], ids["b.md"]], "stores": ["second"]}
    project.environment["INGEST_API_TOKEN"] = "the same user at the other server"
    with Served(project, token=project.environment["INGEST_API_TOKEN"]) as other, ThreadPoolExecutor(8) as pool:
        servers = [server, other] * 4
        asked = pool.map(lambda s: s.client.post("/api/ingestion-jobs", json=wanted, headers=headers), servers)
        answers = list(asked)
    assert {answer.status_code for answer in answers} == {202}
    [job_id] = {answer.json()["job"]["jobId"] for answer in answers}
    job = _ended(server, job_id)
    assert (job["nSucceeded"], len(job["runIds"])) == (2, 1)
    again = server.client.post("/api/ingestion-jobs", json=wanted, headers=headers)
    assert again.json()["job"]["jobId"] == job_id
    assert len(server.client.get("/api/ingestion-jobs").json()["jobs"]) == 2
    another = server.client.post("/api/ingestion-jobs", json={**wanted, "stores": []}, headers=headers)
    assert another.status_code == 422


def test_somebody_elses_change_comes_first(server: Served) -> None:
    """With the ETag of an older state of the record, work on it is refused, and the current one is told."""
    document = _ids(server)["a.md"]
    seen = server.client.get(f"/api/documents/{document}").headers["etag"]
    path = f"/api/ingestion/{document}"
    job = server.client.post(path, json={"storeSlug": "second"}, headers={"If-Match": seen}).json()["job"]
    _ended(server, str(job["jobId"]))
    refused = server.client.post(path, json={"storeSlug": "second"}, headers={"If-Match": seen})
    assert refused.status_code == 412
    assert refused.json()["version"] == server.client.get(f"/api/documents/{document}").headers["etag"]


def test_cancelling_releases_what_is_held(tmp_path: Path) -> None:
    """A cancelled job ends with what was done; what it held is free again, and a retry does the rest."""
    project = SlowProject(tmp_path, 12)
    project.chunk_with("slow_splitter:split")
    with Served(project) as server:
        wanted = {"filter": {}, "mode": "stale"}
        job_id = server.client.post("/api/ingestion-jobs", json=wanted).json()["job"]["jobId"]
        _once_it_has(server, job_id, "nSucceeded")
        assert server.client.post(f"/api/ingestion-jobs/{job_id}/retry").status_code == 409
        assert server.client.post(f"/api/ingestion-jobs/{job_id}/cancel").status_code == 202
        job = _ended(server, job_id)
        assert job["status"] == "partial"
        assert "interrupted" in str(job["errorMessage"])
        assert 0 < int(str(job["nSucceeded"])) < 12
        assert not [d for d in server.client.get("/api/documents").json()["documents"] if d["inProgress"]]
        assert server.client.post(f"/api/ingestion-jobs/{job_id}/cancel").json()["status"] == "partial"
        again = server.client.post(f"/api/ingestion-jobs/{job_id}/retry").json()["job"]
        assert again["nRequested"] == 12 - int(str(job["nSucceeded"]))
        assert _ended(server, again["jobId"])["nSucceeded"] == again["nRequested"]
        assert server.client.get("/api/documents/counts").json()["stores"] == {"default": {"Ingested": 12}}


@pytest.mark.parametrize("killed", ["worker", "server"])
def test_a_death_is_settled(tmp_path: Path, killed: str) -> None:
    """A job whose process is killed ends as failed by itself; one whose server is killed goes on to its end."""
    project = SlowProject(tmp_path, 6)
    project.chunk_with("slow_splitter:split")
    with Served(project) as server:
        wanted = {"filter": {}, "mode": "stale"}
        job_id = server.client.post("/api/ingestion-jobs", json=wanted).json()["job"]["jobId"]
        if killed == "worker":
            _once_it_has(server, job_id, "startedAt")  # a process that is just being started has no name yet
            found = subprocess.run(["pgrep", "-f", f"run-job {job_id}"], capture_output=True, text=True, check=True)
            os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
            job = _ended(server, job_id)
            assert job["status"] == "failed"
            assert "died" in str(job["errorMessage"])
            return
        server.process.kill()
        server.process.wait()
    with Served(project) as server:
        job = _ended(server, job_id)
        assert (job["status"], job["nSucceeded"]) == ("succeeded", 6)


def test_a_job_that_nobody_began_is_settled(project: Project) -> None:
    """A server that dies between accepting a job and starting its process leaves a job that the next command ends."""
    code = (
        "import asyncio, os, msgspec\n"
        "from ingest_assets.components import Components\n"
        "from ingest_assets.settings import load_settings\n"
        "from resources.clock import utc_now\n"
        "from resources.document_state.ingest_jobs import IngestJob\n"
        "from resources.document_state.process_identity import this_process\n"
        "from resources.document_state.take_up import Mode\n"
        "job = IngestJob('j' * 32, 'default', 'u', Mode.INCREMENTAL, utc_now(), this_process())\n"
        "asyncio.run(Components(load_settings()).accepted_jobs.accept(job, [['a']]))\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=project.root, check=False)
    job = project.json("jobs", "j" * 32)
    assert job["status"] == "failed"
    assert "died" in job["error_message"]


def test_a_job_is_begun_once(project: Project, server: Served) -> None:
    """Of two processes that are to do a job, one does; the other says so and touches nothing."""
    ids = _ids(server)
    job = server.client.post(f"/api/ingestion/{ids['a.md']}", json={"storeSlug": "second"}).json()["job"]
    job_id = str(job["jobId"])
    done = [threading.Thread(target=project.run, args=("run-job", job_id)) for _ in range(2)]
    for thread in done:
        thread.start()
    for thread in done:
        thread.join()
    job = _ended(server, job_id)
    assert (job["status"], len(job["runIds"])) == ("succeeded", 1)
