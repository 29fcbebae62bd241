"""Workers: who is alive, who is dead, and that a dead one changes nothing."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.process_identity import ProcessIdentity, is_certainly_dead, this_process
from resources.document_state.workers import (
    KIND,
    LEASE,
    Heartbeat,
    LeaseLostError,
    Observation,
    Worker,
    WorkerRecord,
    WorkerWatch,
)
from resources.records.backend import BackendUnavailableError
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state import worker_process
from tests.document_state.documents import NOW, new
from tests.document_state.monotonic_clock import MonotonicClock
from tests.document_state.worker_process import claim_then_publish, register

SPAWN = multiprocessing.get_context("spawn")
MOMENT = timedelta(milliseconds=1)
ELSEWHERE = ProcessIdentity("another boot", "pid:[1]", 1, "1")


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request, tmp_path):
    opened = MemoryBackend() if request.param == "memory" else SqliteBackend(tmp_path / "state.db")
    yield opened
    await opened.close()


@pytest.fixture
def clock(monkeypatch):
    return MonotonicClock(monkeypatch)


@pytest.fixture
async def sqlite(tmp_path):
    opened = SqliteBackend(tmp_path / "state.db")
    yield opened
    await opened.close()


async def record_of(backend, worker_id) -> WorkerRecord | None:
    """A worker's record, read around the worker."""
    found = await backend.read(KIND, worker_id)
    return found and msgspec.json.decode(found.value, type=WorkerRecord)


async def beaten(backend, worker, n_beats) -> None:
    """Wait until a worker's heart has beaten so often."""
    async with asyncio.timeout(30):
        while (await record_of(backend, worker.worker_id)).beat < n_beats:  # noqa: ASYNC110 - it beats in its own loop
            await asyncio.sleep(0.005)


async def put_worker(backend, record: WorkerRecord) -> None:
    """A worker of another machine, or of any identity."""
    found = await backend.read(KIND, record.worker_id)
    write = Write(record.worker_id, msgspec.json.encode(record), found.stamp if found else None)
    assert (await backend.compare_and_set(KIND, [write]))[0].written


def spawn(target, *args, **options):
    """Start a process with a line to it."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(*args, theirs), kwargs=options, daemon=True)
    process.start()
    return process, ours


def stat_of(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


class TestWorker:
    async def test_register(self, backend):
        """A worker is known with its run, its process and its time, under an id of its own."""
        one = await Worker.register(backend, "run 0", NOW)
        two = await Worker.register(backend, "run 1", NOW)
        record = await record_of(backend, one.worker_id)
        assert record == WorkerRecord(one.worker_id, "run 0", this_process(), NOW)
        assert one.worker_id != two.worker_id
        assert two.run_id == "run 1"

    async def test_beat_moves(self, backend):
        """Each beat is seen by others."""
        worker = await Worker.register(backend, "run", NOW)
        beats = []
        for _ in range(3):
            await worker.beat()
            beats.append((await record_of(backend, worker.worker_id)).beat)
        assert beats == [1, 2, 3]

    async def test_hold_names_all_documents(self, backend):
        """The record names just the documents held last, and a beat keeps them."""
        worker = await Worker.register(backend, "run", NOW)
        await worker.hold(["a", "b"])
        await worker.beat()
        assert (await record_of(backend, worker.worker_id)).claimed == ("a", "b")
        await worker.hold(["c"])
        assert (await record_of(backend, worker.worker_id)).claimed == ("c",)

    async def test_end_leaves_nothing(self, backend):
        """A worker that holds nothing is gone when it ends."""
        worker = await Worker.register(backend, "run", NOW)
        await worker.hold(["a"])
        await worker.hold(())
        await worker.end()
        assert await record_of(backend, worker.worker_id) is None
        await worker.end()

    async def test_end_with_documents_stays_for_the_sweep(self, backend):
        """What a worker still holds or owes stays named after its end."""
        worker = await Worker.register(backend, "run", NOW)
        await worker.hold(["a"])
        await worker.end()
        assert (await record_of(backend, worker.worker_id)).claimed == ("a",)

    @pytest.mark.parametrize("settled", [False, True])
    async def test_declared_dead_every_later_call_fails(self, backend, settled):
        """Once declared dead a worker is refused for ever, whether its record was settled or not."""
        worker = await Worker.register(backend, "run", NOW, timedelta(0))
        watch = WorkerWatch(backend, timedelta(0))
        assert [dead.worker_id for dead in await watch.bury()] == [worker.worker_id]
        if settled:
            await watch.settle(worker.worker_id)
        before = await backend.read(KIND, worker.worker_id)
        for _ in range(2):
            for call in (worker.ensure_alive, worker.beat, lambda: worker.hold(["a"])):
                with pytest.raises(LeaseLostError, match=worker.worker_id):
                    await call()
        await worker.end()
        assert await backend.read(KIND, worker.worker_id) == before

    async def test_knows_that_it_is_dead(self, backend):
        """A worker that was told so once does not ask again, however fresh its last renewal was."""
        worker = await Worker.register(backend, "run", NOW)
        await WorkerWatch(backend, timedelta(0)).bury()
        await worker.ensure_alive()
        with pytest.raises(LeaseLostError):
            await worker.beat()
        with pytest.raises(LeaseLostError):
            await worker.ensure_alive()

    async def test_ensure_alive_asks_only_after_half_a_lease(self, backend, clock):
        """A worker that renewed just now does not write again; one that slept does."""
        worker = await Worker.register(backend, "run", NOW)
        clock.pass_by(LEASE / 2)
        await worker.ensure_alive()
        assert (await record_of(backend, worker.worker_id)).beat == 0
        clock.pass_by(MOMENT)
        await worker.ensure_alive()
        assert (await record_of(backend, worker.worker_id)).beat == 1

    async def test_lost_reply_is_no_death(self, backend):
        """A beat that was committed and whose reply was lost does not make the worker take itself for dead."""
        worker = await Worker.register(backend, "run", NOW)
        write = backend._write

        async def commits_and_breaks(kind, writes):
            await write(kind, writes)
            raise BackendUnavailableError(backend.uri, "the line broke")

        backend._write = commits_and_breaks
        with pytest.raises(BackendUnavailableError):
            await worker.hold(["a"])
        backend._write = write
        await worker.hold(["b"])
        assert (await record_of(backend, worker.worker_id)).claimed == ("b",)


class TestHeartbeat:
    async def test_beats_keep_alive(self, backend, clock):
        """A worker with a heartbeat outlives its lease many times over."""
        worker = await Worker.register(backend, "run", NOW)
        watch = WorkerWatch(backend)
        with Heartbeat(worker, timedelta(seconds=0.01)):
            for n_beats in range(1, 6):
                clock.pass_by(LEASE - MOMENT)
                await beaten(backend, worker, n_beats)
                assert await watch.bury() == []
        clock.pass_by(LEASE)
        assert [dead.worker_id for dead in await watch.bury()] == [worker.worker_id]

    async def test_stops_with_the_block(self, backend):
        """After the block nothing beats."""
        worker = await Worker.register(backend, "run", NOW)
        with Heartbeat(worker, timedelta(seconds=0.01)):
            await asyncio.sleep(0.05)
        before = await record_of(backend, worker.worker_id)
        await asyncio.sleep(0.05)
        assert await record_of(backend, worker.worker_id) == before

    async def test_ends_when_declared_dead(self, backend):
        """The heart of a worker that was declared dead stops by itself, and leaves the record as it is."""
        worker = await Worker.register(backend, "run", NOW, timedelta(0))
        await WorkerWatch(backend, timedelta(0)).bury()
        before = await backend.read(KIND, worker.worker_id)
        with Heartbeat(worker, timedelta(seconds=0.01)):
            await asyncio.sleep(0.1)
        assert await backend.read(KIND, worker.worker_id) == before

    async def test_outlives_an_outage(self, sqlite):
        """A backend that is locked for a while does not stop the heart."""
        worker = await Worker.register(sqlite, "run", NOW)
        write, failures = sqlite._write, iter(range(3))

        async def fails_at_first(kind, writes):
            if next(failures, None) is not None:
                raise BackendUnavailableError(sqlite.uri, "locked")
            return await write(kind, writes)

        sqlite._write = fails_at_first
        with Heartbeat(worker, timedelta(seconds=0.01)):
            await beaten(sqlite, worker, 1)


class TestWatch:
    async def test_living_process_is_not_buried(self, backend):
        """A worker of this machine whose process lives gets its whole lease."""
        worker = await Worker.register(backend, "run", NOW)
        watch = WorkerWatch(backend)
        assert await watch.bury() == []
        assert [living.worker_id for living in await watch.living()] == [worker.worker_id]
        assert not any(worker.dead for worker in await watch.all())

    async def test_other_machine_after_one_lease_of_the_watcher(self, backend, clock):
        """A worker that cannot be looked at is dead once its beat stood still for one lease of the watcher's clock."""
        await put_worker(backend, WorkerRecord("w", "run", ELSEWHERE, NOW, claimed=("a",)))
        watch = WorkerWatch(backend)
        assert await watch.bury() == []
        clock.pass_by(LEASE - MOMENT)
        assert await watch.bury() == []
        clock.pass_by(MOMENT)
        dead = await watch.bury()
        assert [(record.worker_id, record.dead, record.claimed) for record in dead] == [("w", True, ("a",))]
        assert (await record_of(backend, "w")).dead

    async def test_a_moved_beat_begins_a_new_lease(self, backend, clock):
        """Whoever beats once within each lease is never dead."""
        watch = WorkerWatch(backend)
        for beat in range(5):
            await put_worker(backend, WorkerRecord("w", "run", ELSEWHERE, NOW, beat=beat))
            assert await watch.bury() == []
            clock.pass_by(LEASE - MOMENT)

    @pytest.mark.parametrize("year", [1971, 2999])
    async def test_wall_clocks_change_nothing(self, backend, clock, year):
        """Whatever a worker's clock says, only the watcher's own monotonic clock counts."""
        await put_worker(backend, WorkerRecord("w", "run", ELSEWHERE, datetime(year, 1, 1, tzinfo=UTC)))
        watch = WorkerWatch(backend)
        assert await watch.bury() == []
        clock.pass_by(LEASE)
        assert len(await watch.bury()) == 1

    async def test_observations_can_be_handed_on(self, backend, clock):
        """A watch that was given another's observations goes on where that one stopped."""
        await put_worker(backend, WorkerRecord("w", "run", ELSEWHERE, NOW))
        first = WorkerWatch(backend)
        await first.bury()
        clock.pass_by(LEASE)
        assert await WorkerWatch(backend).bury() == []
        second = WorkerWatch(backend, observations=first.observations)
        assert len(await second.bury()) == 1

    async def test_observations_of_another_boot_do_not_kill(self, backend, clock):
        """An observation that lies in the future of this clock was made on another: it is made anew."""
        await put_worker(backend, WorkerRecord("w", "run", ELSEWHERE, NOW))
        from_elsewhere = {"w": Observation(0, clock.monotonic() + 10**6)}
        watch = WorkerWatch(backend, observations=from_elsewhere)
        assert await watch.bury() == []
        assert watch.observations["w"].seen == clock.monotonic()

    async def test_forgets_who_is_gone(self, backend):
        """A watch remembers living workers only."""
        worker = await Worker.register(backend, "run", NOW)
        watch = WorkerWatch(backend)
        await watch.bury()
        await worker.end()
        await watch.bury()
        assert watch.observations == {}

    async def test_buried_comes_again_until_it_is_settled(self, backend):
        """A sweep that died finds the same dead worker again; settling ends that, and may be repeated."""
        await put_worker(backend, WorkerRecord("w", "run", ELSEWHERE, NOW, dead=True, claimed=("a",)))
        for _ in range(2):
            assert [dead.worker_id for dead in await WorkerWatch(backend).bury()] == ["w"]
        watch = WorkerWatch(backend)
        assert [dead.worker_id for dead in await watch.all() if dead.dead] == ["w"]
        for _ in range(2):
            await watch.settle("w")
        assert await watch.bury() == await watch.all() == []

    async def test_a_beat_in_the_last_moment_wins(self, backend):
        """A worker that beats between the watcher's reading and its verdict lives."""
        worker = await Worker.register(backend, "run", NOW, timedelta(0))
        watch = WorkerWatch(backend, timedelta(0))
        read = watch._all

        async def beats_meanwhile():
            records = await read()
            await worker.beat()
            return records

        watch._all = beats_meanwhile
        assert await watch.bury() == []
        await worker.beat()


class TestProcesses:
    @pytest.mark.parametrize("killed", [False, True])
    async def test_dead_process_is_buried_at_once(self, sqlite, killed):
        """A worker whose process on this machine exited or was killed is dead without any waiting."""
        process, line = spawn(register, sqlite.path, ("a", "b"), stays=killed)
        worker_id = line.recv()
        watch = WorkerWatch(sqlite, timedelta(hours=1))
        if killed:
            assert await watch.bury() == []
            process.kill()
        process.join()
        assert [(dead.worker_id, dead.claimed) for dead in await watch.bury()] == [(worker_id, ("a", "b"))]

    def test_zombie_counts_as_dead(self):
        """A process that has ended and that nobody has waited for yet is dead."""
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        identity = msgspec.structs.replace(this_process(), pid=process.pid, started=stat_of(process.pid)[19])
        assert not is_certainly_dead(identity)
        process.stdin.close()
        for _ in range(500):
            if is_certainly_dead(identity):
                break
            time.sleep(0.01)
        assert stat_of(process.pid)[0] == "Z"
        assert is_certainly_dead(identity)
        process.wait()

    def test_reused_process_id_is_not_the_process(self):
        """Another process under the old number does not bring the old one back to life."""
        assert not is_certainly_dead(this_process())
        assert is_certainly_dead(msgspec.structs.replace(this_process(), started="1"))

    @pytest.mark.parametrize("change", [{"boot_id": "other"}, {"boot_id": ""}, {"namespace": "pid:[1]"}])
    def test_other_machines_cannot_be_judged(self, change):
        """A process of another machine, boot or container is never certainly dead."""
        assert not is_certainly_dead(msgspec.structs.replace(this_process(), pid=2**22 + 1, **change))

    async def test_stopped_worker_publishes_nothing_after_its_lease(self, sqlite):
        """A process that was stopped for longer than its lease and goes on is refused at every write."""
        state = RecordDocumentStateStore(sqlite)
        await state.set_status("a", new())
        process, line = spawn(claim_then_publish, sqlite.path)
        worker_id = line.recv()
        os.kill(process.pid, signal.SIGSTOP)
        watch = WorkerWatch(sqlite, worker_process.LEASE)
        dead = []
        for _ in range(200):
            dead = dead or await watch.bury()
            await asyncio.sleep(0.01)
        assert [(record.worker_id, record.claimed) for record in dead] == [(worker_id, ("a",))]
        held = await state.get_status("a")
        assert held.claim.worker_id == worker_id
        assert await state.set_status("a", transitions.released(held, NOW), expected=held)
        await watch.settle(worker_id)
        before = await state.get_status("a")
        line.send("go on")
        os.kill(process.pid, signal.SIGCONT)
        assert line.recv() == {"publish": False, "ensure_alive": False, "beat": False}
        assert await state.get_status("a") == before
        process.join()


class TestDamagedRecord:
    """A record that was damaged from outside stops nobody, and is told by its name."""

    async def test_of_a_dead_worker(self, backend, caplog):
        """Its worker is dead after a lease without a write, and not before; settling removes it."""
        await backend.compare_and_set(KIND, [Write("w1", b"garbage", None)])
        patient, watch = WorkerWatch(backend), WorkerWatch(backend, timedelta(0))
        assert [await patient.bury(), await patient.bury()] == [[], []]
        assert await patient.living_ids() == ["w1"]
        [buried] = await watch.bury()
        assert (buried.worker_id, buried.dead, buried.damaged, buried.claimed) == ("w1", True, True, ())
        assert [worker.worker_id for worker in await watch.bury()] == ["w1"]
        assert "worker 'w1'" in caplog.text
        await watch.settle("w1")
        assert await watch.all() == []

    async def test_of_a_living_worker(self, backend):
        """The next beat writes it anew, with all that the worker holds."""
        worker = await Worker.register(backend, "run", NOW)
        await worker.hold(["a"])
        await _damage(backend, worker, worker._stamp)
        [seen] = await WorkerWatch(backend).all()
        assert (seen.worker_id, seen.damaged) == (worker.worker_id, True)
        worker._stamp = (await backend.read(KIND, worker.worker_id)).stamp  # as damage leaves it that changes no stamp
        await worker.beat()
        [seen] = await WorkerWatch(backend).all()
        assert (seen.claimed, seen.damaged) == (("a",), False)

    async def test_written_by_somebody_else(self, backend):
        """What stands in place of its own record, and cannot be read, may have said that the worker is dead."""
        worker = await Worker.register(backend, "run", NOW)
        await _damage(backend, worker, worker._stamp)
        with pytest.raises(LeaseLostError):
            await worker.beat()


async def _damage(backend, worker, stamp):
    [done] = await backend.compare_and_set(KIND, [Write(worker.worker_id, b"{", stamp)])
    assert done.written
