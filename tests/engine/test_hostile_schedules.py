"""Runs that stand still for longer than their lease, and runs whose clock is set while they work."""

import asyncio
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import Status
from resources.document_state.reasons import Reason
from resources.document_state.workers import WorkerWatch
from resources.extractor.none_extractor import NoneExtractor
from resources.store.duckdb.duckdb_store import DuckDBStore
from tests.document_state.wall_clock import STEPS, WallClock
from tests.engine.stopped_process import LEASE, run_and_stop
from tests.engine.workshop import STAMP, workers

SPAWN = multiprocessing.get_context("spawn")


async def until(condition, seconds: float = 30) -> None:
    """Wait for something that happens elsewhere."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def is_stopped(pid: int) -> bool:
    """Whether the kernel says that a process stands still."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.fixture
def stopped_run(shop):
    """Begins a run in another process, which stops itself; kills it in the end."""
    processes = []

    async def begin(at: str):
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=run_and_stop, args=(shop.folder, at, theirs), daemon=True)
        process.start()
        processes.append(process)
        await until(ours.poll)
        worker_id = ours.recv()
        await until(lambda: is_stopped(process.pid))
        return process, ours, worker_id

    yield begin
    for process in processes:
        process.kill()
        process.join()


async def sweep(shop, worker_id: str) -> None:
    """Wait for one lease, declare the worker dead, and take from it what it held."""
    watch = WorkerWatch(shop.backend, LEASE)
    assert await watch.bury() == []
    await asyncio.sleep(LEASE.total_seconds())
    dead = await watch.bury()
    assert [record.worker_id for record in dead] == [worker_id]
    for doc in (await shop.state.get_many(dead[0].claimed)).values():
        await shop.state.set_many([(transitions.released(doc, utc_now()), doc)])
    await watch.settle(worker_id)


class TestStoppedRun:
    @pytest.mark.parametrize("at", ["extraction", "store", "link"])
    async def test_writes_neither_record_nor_store(self, shop, stopped_run, at):
        """A run that slept past its lease changes no record and no store that another built since, wherever it woke."""
        shop.put("a.md", "the old text")
        await shop.discover()
        process, line, worker_id = await stopped_run(at)
        assert (await shop.doc("a.md")).claim.worker_id == worker_id
        await sweep(shop, worker_id)
        shop.put("a.md", "the new text, which is longer")
        await shop.discover()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        before, held = await shop.doc("a.md"), shop.held()
        assert shop.found("text") == "the new text, which is longer"
        os.kill(process.pid, signal.SIGCONT)
        await until(line.poll)
        assert line.recv() == ("lease lost", [])
        assert await shop.doc("a.md") == before
        assert shop.held() == held
        assert shop.found("text") == "the new text, which is longer"
        assert await workers(shop) == []

    async def test_stopped_in_a_transaction(self, shop, stopped_run):
        """A run that stops with a store's file locked makes others try again, and what it wrote is replaced."""
        shop.put("a.md", "the old text")
        await shop.discover()
        process, line, worker_id = await stopped_run("transaction")
        await sweep(shop, worker_id)
        shop.put("a.md", "the new text, which is longer")
        await shop.discover()
        patient, shop.stores = shop.stores, {"s": DuckDBStore("s", shop.folder / "s.duckdb", STAMP, lock_timeout=0.2)}
        assert (await shop.pull()).results["a.md"].reason is Reason.STORE_UNAVAILABLE
        before = await shop.doc("a.md")
        assert before.build.next_attempt_at is not None
        os.kill(process.pid, signal.SIGCONT)
        await until(line.poll)
        assert line.recv() == ("lease lost", [])
        assert await shop.doc("a.md") == before
        shop.stores = patient
        assert (await shop.work_on("a.md")).outcomes == {"a.md": Outcome.SUCCEEDED}
        assert shop.found("text") == "the new text, which is longer"

    @pytest.mark.parametrize("at", ["extraction", "store", "link"])
    async def test_taken_from_and_not_yet_done(self, shop, stopped_run, at):
        """A run that wakes when its document was taken and is nobody's yet publishes nothing; the next run does it."""
        shop.put("a.md", "the text")
        await shop.discover()
        process, line, worker_id = await stopped_run(at)
        await sweep(shop, worker_id)
        before = await shop.doc("a.md")
        os.kill(process.pid, signal.SIGCONT)
        await until(line.poll)
        assert line.recv() == ("lease lost", [])
        assert await shop.doc("a.md") == before
        await shop.pull()
        doc = await shop.doc("a.md")
        assert (doc.claim, doc.build.status, shop.found("text")) == (None, Status.COMPLETED, "the text")


class StepsClock(NoneExtractor):
    """An extractor during whose work the clock is set."""

    def __init__(self, clock, step) -> None:
        self._clock, self._step = clock, step

    async def extract(self, document_id, chunks):
        """See Extractor."""
        self._clock.step(self._step)
        return await super().extract(document_id, chunks)


@pytest.mark.parametrize("step", STEPS)
async def test_clock_is_set_during_a_run(shop, monkeypatch, step):
    """Documents are discovered, done, changed and removed as ever where the clock steps by an hour in between."""
    clock = WallClock(monkeypatch)
    shop.put("a.md", "text")
    shop.put("b.md", "other")
    await shop.discover()
    clock.step(step)
    shop.extractor = StepsClock(clock, -step)
    assert set((await shop.pull()).outcomes.values()) == {Outcome.SUCCEEDED}
    assert len(shop.held()) == 2
    assert await shop.state.list_due(utc_now(), 10) == []
    clock.step(step)
    assert (await shop.pull()).outcomes == {}
    shop.put("a.md", "another text")
    (shop.root / "b.md").unlink()
    await shop.discover()
    clock.step(step)
    assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED, "b.md": Outcome.REMOVED}
    assert shop.found("text") == "another text"
    assert await workers(shop) == []
