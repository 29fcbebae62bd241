"""Wall clocks that are set by an hour, either way, change nothing but the times that records show."""

import asyncio
import time
from datetime import timedelta

import pytest

from resources.clock import utc_now
from resources.document_state import removals, transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Mode, is_taken_up
from resources.document_state.workers import LeaseLostError, Worker, WorkerWatch
from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.documents import built, claimed, content_changed, extracted, ingested, new
from tests.document_state.wall_clock import HOUR, STEPS, WallClock

LEASE = timedelta(seconds=0.5)


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request, tmp_path):
    opened = MemoryBackend() if request.param == "memory" else SqliteBackend(tmp_path / "state.db")
    yield opened
    await opened.close()


@pytest.fixture
def state(backend):
    return RecordDocumentStateStore(backend)


@pytest.fixture
def clock(monkeypatch):
    return WallClock(monkeypatch)


async def change(state, doc, changed):
    """Write a change that nothing stands in the way of."""
    [stored] = await state.set_many([(changed, doc)])
    assert stored is not None
    return stored


def test_the_clock_is_set(clock):
    """The clock of these tests moves what the product takes for the time, and no lease."""
    before, monotonic = utc_now(), time.monotonic()
    clock.step(HOUR)
    assert timedelta(0) <= utc_now() - before - HOUR < timedelta(seconds=10)
    assert time.monotonic() - monotonic < 10


@pytest.mark.parametrize("step", STEPS)
class TestDueWork:
    async def is_due(self, state, doc) -> bool:
        """Whether a pull run and an incremental request take the document up now."""
        due = await state.list_due(utc_now(), 10) == [doc.document_id]
        assert is_taken_up(doc, Mode.INCREMENTAL, utc_now()) is due
        return due

    async def test_new_document(self, state, clock, step):
        """A document that was discovered before the step is due after it."""
        doc = await change(state, None, new(now=utc_now()))
        clock.step(step)
        assert await self.is_due(state, doc)

    async def test_released_document(self, state, clock, step):
        """A document claimed before the step and given back after it is due at once, and after a step back."""
        doc = await change(state, None, new(now=utc_now()))
        held = await change(state, doc, claimed(doc, now=utc_now()))
        clock.step(step)
        assert await state.list_due(utc_now(), 10) == []
        free = await change(state, held, transitions.released(held, utc_now()))
        assert await self.is_due(state, free)
        clock.step(-step)
        assert await self.is_due(state, free)

    async def test_unfinished_build_changed_content_and_removal(self, state, clock, step):
        """A build that is owed, content that changed and a document that vanished are due over the step."""
        doc = await change(state, None, new(now=utc_now()))
        held = await change(state, doc, claimed(doc, now=utc_now()))
        doc = await change(state, held, extracted(held, now=utc_now()))
        doc = await change(state, doc, transitions.released(doc, utc_now()))
        clock.step(step)
        assert await self.is_due(state, doc)
        doc = await change(state, doc, content_changed(doc, now=utc_now()))
        clock.step(-step)
        assert await self.is_due(state, doc)
        doc = await change(state, doc, removals.vanished(doc, utc_now()))
        clock.step(step)
        assert await self.is_due(state, doc)
        assert doc.presence is Presence.VANISHED

    async def test_complete_document_stays_complete(self, state, clock, step):
        """Work that is done under a clock which steps in the middle is done: it is never due again by the clock."""
        doc = await change(state, None, new(now=utc_now()))
        held = await change(state, doc, claimed(doc, now=utc_now()))
        clock.step(step)
        held = await change(state, held, extracted(held, now=utc_now()))
        clock.step(-step)
        doc = await change(state, held, built(held, ingested(held, now=utc_now()), now=utc_now()))
        assert doc.build.status is Status.COMPLETED
        for _ in range(3):
            assert not await self.is_due(state, doc)
            clock.step(step)

    async def test_pause_of_a_failed_document(self, state, clock, step):
        """A pause is measured on the wall clock: a step makes it longer or shorter by itself at most, never endless."""
        doc = await change(state, None, new(now=utc_now()))
        held = await change(state, doc, claimed(doc, now=utc_now()))
        policy = transitions.RetryPolicy()
        reason = Reason.SOURCE_UNAVAILABLE
        doc = await change(state, held, transitions.extraction_failed(held, reason, "", utc_now(), policy))
        clock.step(step)
        clock.step(policy.first_pause + max(-step, timedelta(0)))
        assert await self.is_due(state, doc)


@pytest.mark.parametrize("step", STEPS)
class TestWorkers:
    async def test_living_worker_is_not_buried(self, backend, clock, step):
        """A worker that beats lives, and is not asked to prove it sooner, however the clock is set."""
        worker = await Worker.register(backend, "run", utc_now())
        watch = WorkerWatch(backend)
        for _ in range(5):
            read = await backend.read("worker", worker.worker_id)
            assert await watch.bury() == []
            clock.step(step)
            await worker.ensure_alive()
            assert await backend.read("worker", worker.worker_id) == read
            await worker.hold(["a"])

    async def test_silent_worker_is_buried_after_one_lease(self, backend, clock, step):
        """A worker that stopped to beat is dead after one lease, no sooner and no later, however the clock is set."""
        await Worker.register(backend, "run", utc_now(), LEASE)
        watch = WorkerWatch(backend, LEASE)
        start = time.monotonic()
        while not await watch.bury():
            assert time.monotonic() - start < 30
            clock.step(step)
            step = -step
            await asyncio.sleep(0.01)
        assert time.monotonic() - start >= LEASE.total_seconds()

    async def test_takeover(self, backend, state, clock, step):
        """Over a step too a document goes to another worker with a larger token, and the old one is refused."""
        doc = await change(state, None, new(now=utc_now()))
        old = await Worker.register(backend, "run 1", utc_now(), LEASE)
        await old.hold(["a"])
        held = await change(state, doc, claimed(doc, worker=old.worker_id, now=utc_now()))
        clock.step(step)
        watch = WorkerWatch(backend, timedelta(0))
        [dead] = await watch.bury()
        assert dead.claimed == ("a",)
        free = await change(state, held, transitions.released(held, utc_now()))
        await watch.settle(old.worker_id)
        clock.step(-step)
        assert await state.list_due(utc_now(), 10) == ["a"]
        new_one = await Worker.register(backend, "run 2", utc_now(), LEASE)
        await new_one.hold(["a"])
        taken = await change(state, free, claimed(free, worker=new_one.worker_id, now=utc_now()))
        assert (taken.claim.token, held.claim.token) == (2, 1)
        assert not await state.set_status("a", extracted(held, now=utc_now()), expected=held)
        with pytest.raises(LeaseLostError):
            await old.beat()
        assert await state.get_status("a") == taken
