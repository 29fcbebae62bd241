"""Processes that die, stop or meet: nothing is lost and nothing is done twice."""

import asyncio
import collections
import contextlib
import fcntl
import os
import re
import signal
import time
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.records.sqlite_backend import SqliteBackend
from tests.end_to_end.project import Project

_N = 160
_CONFIG = """
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[runs]
group = 20
"""


@pytest.fixture
def corpus(project: Project) -> Project:
    """A project of small documents, cut into many groups."""
    project.configure(_CONFIG)
    for number in range(_N):
        words = "\n\n".join(f"Paragraph {i} of document {number} says something new." for i in range(60))
        project.write(f"{number:03d}.md", f"# Document {number}\n\n{words}")
    return project


def _wait_for(project: Project, n_done: int) -> None:
    """Wait until some documents are published."""
    import sqlite3

    until = time.monotonic() + 60
    query = (
        "SELECT count(*) FROM records JOIN labels ON labels.id = records.label "
        "WHERE kind = 'document' AND labels.label LIKE '%\"COMPLETED\"%Ingested%'"
    )
    while time.monotonic() < until:
        path = project.root / ".ingest" / "state.db"
        if path.exists():
            try:
                with sqlite3.connect(path) as state:
                    if state.execute(query).fetchone()[0] >= n_done:
                        return
            except sqlite3.OperationalError:
                pass
        time.sleep(0.01)
    pytest.fail("the run did not get there")


def _stop_outside_of_locks(pid: int, data: Path) -> None:
    """Stop a process where it holds no lock of a database or store, for that would stop everybody else as well."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        os.kill(pid, signal.SIGSTOP)
        databases, locks = list(data.rglob("*.db")), list(data.rglob("*.lock"))
        if not any(map(_is_in_transaction, databases)) and not any(map(_is_locked, locks)):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.02)
    pytest.fail("it always held a lock")


def _is_in_transaction(path: Path) -> bool:
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(path, timeout=0.1, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    return False


def _is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _materializations(root: Path, asset_key: dg.AssetKey, monkeypatch: pytest.MonkeyPatch) -> collections.Counter[str]:
    monkeypatch.setenv("DAGSTER_HOME", str(root / ".ingest" / "dagster"))
    with dg.DagsterInstance.get() as instance:
        records = instance.fetch_materializations(asset_key, limit=10_000).records
        unfinished = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    assert not unfinished
    return collections.Counter(record.partition_key or "" for record in records)


def _check_whole(project: Project, monkeypatch: pytest.MonkeyPatch, *, told_once: bool = True) -> None:
    status = project.json("status")
    assert status["extraction"] == {"COMPLETED": _N}
    assert status["build"] == {"COMPLETED": _N}
    with duckdb.connect(str(project.root / ".ingest" / "stores" / "default.duckdb"), read_only=True) as store:
        chunks = store.execute("SELECT count(*), count(DISTINCT chunk_id), count(DISTINCT document_id) FROM chunks")
        n_chunks, n_distinct, n_documents = chunks.fetchone() or (0, 0, 0)
    assert n_chunks == n_distinct
    assert n_documents == _N
    for asset_key in (dg.AssetKey("extracted"), dg.AssetKey(["built", "default"])):
        counts = _materializations(project.root, asset_key, monkeypatch)
        assert len(counts) == _N
        assert not told_once or set(counts.values()) == {1}, asset_key


def test_kills_lose_nothing_and_double_nothing(corpus: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two kill -9 and a resume every document is whole, told of once, and no run stays started."""
    for n_done in (20, 70):
        run = corpus.start("run", "--mode", "resume")
        _wait_for(corpus, n_done)
        run.kill()
        run.communicate()
    last = corpus.json("run", "--mode", "resume")
    assert last["n_failed"] == 0
    _check_whole(corpus, monkeypatch)
    assert {job["status"] for job in corpus.json("jobs")} <= {"failed", "partial", "succeeded"}


def test_two_runs_at_once_share_the_work(corpus: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs over the same folder both succeed; each document is done once and told of once."""
    runs = [corpus.start("run", "--json") for _ in range(2)]
    outputs = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    _check_whole(corpus, monkeypatch)


def test_ctrl_c_releases_what_was_claimed(corpus: Project) -> None:
    """An interrupted run exits with 130, nothing stays claimed, and the next run finishes the rest."""
    run = corpus.start("run")
    _wait_for(corpus, 20)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    status = corpus.json("status")
    assert "IN_PROGRESS" not in status["extraction"]
    assert "IN_PROGRESS" not in status["build"]
    rest = corpus.json("run")
    assert 0 < rest["n_requested"] < _N
    assert corpus.json("status")["build"] == {"COMPLETED": _N}


def test_a_forced_run_that_was_terminated_is_continued(corpus: Project) -> None:
    """SIGTERM stops as Ctrl-C does, with an exit code of its own; what it says goes on with just what was left."""
    run = corpus.start("run", "--force")
    _wait_for(corpus, 20)
    run.terminate()
    _, said = run.communicate(timeout=60)
    assert run.returncode == 143
    [job_id] = re.findall("`ingest run --continue ([0-9a-f]+)`", said)
    assert "IN_PROGRESS" not in corpus.json("status")["extraction"]
    done = {result["document_id"] for result in corpus.json("jobs", job_id)["results"]}
    rest = corpus.json("run", "--continue", job_id)
    assert 0 < rest["n_requested"] < _N
    assert not done & {result["document_id"] for result in rest["results"]}
    assert corpus.json("status")["build"] == {"COMPLETED": _N}
    assert corpus.json("run", "--continue", rest["job_id"])["n_requested"] == 0


def test_a_stopped_worker_writes_nothing_after_its_lease(corpus: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run stopped past its lease is taken over; woken up, it gives up and has changed no record and no store."""
    corpus.configure(_CONFIG + "lease_seconds = 1\n")
    run = corpus.start("run")
    _wait_for(corpus, 20)
    _stop_outside_of_locks(run.pid, corpus.root / ".ingest")
    try:
        assert corpus.json("run", "--mode", "resume")["n_failed"] == 0
    finally:
        os.kill(run.pid, signal.SIGCONT)
    run.communicate(timeout=60)
    assert run.returncode != 0
    # Stopped between its last look at the lease and the end of a report, it finishes that one report.
    _check_whole(corpus, monkeypatch, told_once=False)


def test_a_claim_that_no_worker_owns_is_released(project: Project) -> None:
    """A document claimed by a worker nobody knows is taken up by the next run."""
    project.write("one.md", "# One\n\nText.")
    project.json("run")
    asyncio.run(_claim_as_nobody(project.root))
    assert "IN_PROGRESS" in project.json("status")["extraction"]
    project.json("run")
    assert project.json("status")["build"] == {"COMPLETED": 1}


async def _claim_as_nobody(root: Path) -> None:
    state = RecordDocumentStateStore(SqliteBackend(root / ".ingest" / "state.db"))
    async for doc in state.iter_statuses():
        claim = transitions.claimed(doc, "nobody", "no-run", utc_now(), extract=True)
        assert await state.set_status(doc.document_id, claim, expected=doc)
