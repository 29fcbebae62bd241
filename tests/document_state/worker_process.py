"""What the other processes of these tests do; they are spawned, so it must be importable."""

import asyncio
import os
import time
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from resources.clock import utc_now
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.job_records import IngestJobs
from resources.document_state.take_up import Mode
from resources.document_state.workers import LeaseLostError, Worker
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.documents import claimed, extracted

LEASE = timedelta(seconds=0.4)


def register(path: Path, documents: tuple[str, ...], to_parent: Connection, *, stays: bool) -> None:
    """Become a worker that holds documents; then stay, or exit as a process that crashed does."""

    async def go() -> None:
        worker = await Worker.register(SqliteBackend(path), "run", utc_now())
        await worker.hold(documents)
        to_parent.send(worker.worker_id)

    asyncio.run(go())
    while stays:
        time.sleep(60)
    os._exit(1)


def claim_then_publish(path: Path, to_parent: Connection) -> None:
    """Claim document `a`, wait to be told, and then try everything a worker may do."""

    async def go() -> None:
        backend = SqliteBackend(path)
        state = RecordDocumentStateStore(backend)
        worker = await Worker.register(backend, "run", utc_now(), LEASE)
        await worker.hold(["a"])
        read = await state.get_status("a")
        [held] = await state.set_many([(claimed(read, worker=worker.worker_id), read)])
        to_parent.send(worker.worker_id)
        to_parent.recv()
        tried = {"publish": await state.set_status("a", extracted(held), expected=held)}
        for name, call in (("ensure_alive", worker.ensure_alive), ("beat", worker.beat)):
            try:
                await call()
                tried[name] = True
            except LeaseLostError:
                tried[name] = False
        to_parent.send(tried)

    asyncio.run(go())


def create_job(path: Path, to_parent: Connection) -> None:
    """Create a job and die."""

    async def go() -> None:
        jobs = IngestJobs(SqliteBackend(path))
        job = await jobs.create(
            [["a", "b"]], scope_id="default", user_id="u", mode=Mode.RESUME, now=utc_now(), n_unchanged=0, n_busy=0
        )
        to_parent.send(job.job_id)

    asyncio.run(go())
    os._exit(1)
