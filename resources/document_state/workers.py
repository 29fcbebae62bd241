"""Workers: who is at work, proven by a heartbeat, and how the work of a dead one comes back.

A worker names the documents it is about to claim in its own record *before* it claims them, so wherever it dies, the
record says what was in its hands.
"""

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from resources.document_state.process_identity import ProcessIdentity, is_certainly_dead, this_process
from resources.records.backend import BackendUnavailableError, RecordBackend
from resources.records.decoding import readable
from resources.records.record import Record, Stamp, Write

KIND = "worker"
LEASE = timedelta(seconds=30)

_UNKNOWN = ProcessIdentity("", "", 0, "")
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class LeaseLostError(Exception):
    """This worker was declared dead; what it holds belongs to others now. Stop without writing anything."""


class WorkerRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run process.

    Attributes:
        worker_id: a fresh UUID.
        run_id: the Dagster run it works for.
        process: for watchers on the same machine.
        started_at: when it registered.
        beat: grows with every renewal.
        dead: declared dead; the documents in its hands are being taken from it.
        claimed: the documents it holds or has published without telling Dagster yet.
        stage_seconds: how long its run was at each stage, up to the last beat.
        damaged: its record cannot be read, so that nothing is known of it but its id, and that it is written to.
    """

    worker_id: str
    run_id: str
    process: ProcessIdentity
    started_at: datetime
    beat: int = 0
    dead: bool = False
    claimed: tuple[str, ...] = ()
    stage_seconds: dict[str, float] = {}
    damaged: bool = False


class Worker:
    """This process as a worker. Every change is one conditional write of its record; a refused one means it is dead.

    Safe to use from the engine and the heartbeat's thread at once.
    """

    def __init__(
        self,
        backend: RecordBackend,
        record: WorkerRecord,
        stamp: Stamp,
        lease: timedelta,
        stage_seconds: Callable[[], dict[str, float]],
    ) -> None:
        self._backend = backend
        self._stage_seconds = stage_seconds
        self._record = record
        self._stamp = stamp
        self._lease = lease
        self._lock = threading.Lock()
        self._renewed = time.monotonic()
        self._lost = False

    @classmethod
    async def register(
        cls,
        backend: RecordBackend,
        run_id: str,
        now: datetime,
        lease: timedelta = LEASE,
        stage_seconds: Callable[[], dict[str, float]] = dict,
    ) -> "Worker":
        """Make a worker known; `stage_seconds` is asked at every beat."""
        record = WorkerRecord(str(uuid.uuid4()), run_id, this_process(), now)
        write = Write(record.worker_id, msgspec.json.encode(record), None)
        result = (await backend.compare_and_set(KIND, [write]))[0]
        if not result.written or result.stamp is None:
            raise LeaseLostError(f"Worker id {record.worker_id} is taken.")
        return cls(backend, record, result.stamp, lease, stage_seconds)

    @property
    def worker_id(self) -> str:
        """Its id, as claims name it."""
        return self._record.worker_id

    @property
    def run_id(self) -> str:
        """The Dagster run it works for."""
        return self._record.run_id

    async def beat(self) -> None:
        """Prove that it lives."""
        await self._renew()

    async def hold(self, document_ids: Sequence[str]) -> None:
        """Name the documents it holds from now on, all of them; () when nothing is held or owed."""
        await self._renew(claimed=tuple(document_ids))

    async def ensure_alive(self) -> None:
        """Raise LeaseLostError unless others still count this worker as living.

        Measured on the own monotonic clock: a process that slept past its lease asks before it writes anything.
        """
        if self._lost:
            raise LeaseLostError(f"Worker {self.worker_id} was declared dead.")
        if time.monotonic() - self._renewed > self._lease.total_seconds() / 2:
            await self._renew()

    async def end(self) -> None:
        """Leave: the record goes if nothing is held, else it stays for the sweep."""
        async with self._alone():
            if not self._record.claimed and not self._lost:
                await self._backend.compare_and_set(KIND, [Write(self.worker_id, None, self._stamp)])
                self._lost = True

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock without holding up the loop: another task of this loop may be the one that has it."""
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110 - the heartbeat has a loop of its own
            await asyncio.sleep(0.001)
        try:
            yield
        finally:
            self._lock.release()

    async def _renew(self, **changes: object) -> None:
        async with self._alone():
            while True:
                before = time.monotonic()
                beat, seconds = self._record.beat + 1, self._stage_seconds()
                record = msgspec.structs.replace(self._record, beat=beat, stage_seconds=seconds, **changes)
                write = Write(self.worker_id, msgspec.json.encode(record), self._stamp)
                result = (await self._backend.compare_and_set(KIND, [write]))[0]
                if result.written and result.stamp is not None:
                    self._record, self._stamp, self._renewed = record, result.stamp, before
                    return
                self._stamp = await self._stamp_if_alive()

    async def _stamp_if_alive(self) -> Stamp:
        """The record's stamp, if it stands as only we can have written it: by a renewal whose reply was lost."""
        found = await self._backend.read(KIND, self.worker_id)
        if found is None or not _lives(_as_found(self._backend.uri, found)):
            self._lost = True
            raise LeaseLostError(f"Worker {self.worker_id} was declared dead.")
        return found.stamp


class Heartbeat:
    """A thread that beats for a worker while its `with` block runs."""

    def __init__(self, worker: Worker, every: timedelta = LEASE / 3) -> None:
        self._worker = worker
        self._every = every.total_seconds()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            # An outage is not a death: the next beat may get through, and the engine asks before it writes.
            with contextlib.suppress(BackendUnavailableError):
                try:
                    asyncio.run(self._worker.beat())
                except LeaseLostError:
                    return


class Observation(msgspec.Struct, frozen=True):
    """When a watcher first saw a beat, on the watcher's own monotonic clock."""

    beat: int
    seen: float


class WorkerWatch:
    """Judges workers by whether their beat moves within one lease on the watcher's own clock.

    A damaged record stops nobody: a worker that lives writes it anew with its next beat, and one that does not is dead
    after a lease like any other. What it held is released as claims of nobody, and `ingest verify` finds what it owed.

    `observations` can be kept (in a sensor's cursor) and handed to the next watch of the same machine and boot.
    """

    def __init__(
        self, backend: RecordBackend, lease: timedelta = LEASE, observations: dict[str, Observation] | None = None
    ) -> None:
        self._backend = backend
        self._lease = lease.total_seconds()
        self.observations = dict(observations or {})

    async def all(self) -> list[WorkerRecord]:
        """Every worker that has a record: the living, and the dead that are not settled."""
        return [record for record, _ in await self._all()]

    async def living(self) -> list[WorkerRecord]:
        """Workers that are not declared dead."""
        return [record for record in await self.all() if not record.dead]

    async def living_ids(self) -> list[str]:
        """The ids of workers that are not declared dead."""
        return [record.worker_id for record in await self.living()]

    async def bury(self) -> list[WorkerRecord]:
        """Declare dead whoever is, and give all that are dead and not yet settled."""
        dead, seen = [], {}
        now = time.monotonic()
        for record, stamp in await self._all():
            last = self.observations.get(record.worker_id)
            if last is None or last.beat != record.beat or last.seen > now:
                last = Observation(record.beat, now)
            seen[record.worker_id] = last
            if record.dead:
                dead.append(record)
            elif is_certainly_dead(record.process) or now - last.seen >= self._lease:
                buried = msgspec.structs.replace(record, dead=True)
                write = Write(record.worker_id, msgspec.json.encode(buried), stamp)
                if (await self._backend.compare_and_set(KIND, [write]))[0].written:
                    dead.append(buried)
        self.observations = seen
        return dead

    async def settle(self, worker_id: str) -> None:
        """Remove a dead worker's record, once all that was in its hands is settled. Safe to repeat."""
        found = await self._backend.read(KIND, worker_id)
        if found is not None:
            await self._backend.compare_and_set(KIND, [Write(worker_id, None, found.stamp)])

    async def _all(self) -> list[tuple[WorkerRecord, Stamp]]:
        return [(_as_found(self._backend.uri, found), found.stamp) async for found in self._backend.list_records(KIND)]


def _lives(record: WorkerRecord) -> bool:
    """Whether a worker may go on that finds this in place of what it wrote. Of a damaged one nobody can say."""
    return not record.dead and not record.damaged


def _as_found(uri: str, record: Record) -> WorkerRecord:
    """A worker's record; of one that is damaged, what can be said of its worker."""
    said = "Its worker writes it anew, or counts as dead after a lease."
    found = readable(uri, KIND, record, WorkerRecord, said)
    if found is not None and found.worker_id == record.key:
        return found
    return WorkerRecord(record.key, "", _UNKNOWN, _LONG_AGO, beat=record.stamp.version, damaged=True)
