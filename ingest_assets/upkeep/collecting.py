"""Removes artifacts that no record refers to, by a new generation, a fence, a mark and a sweep; and old jobs.

Once a generation is closed and every worker that may have put into it has let go of what it held then, no key of it can
come to be referred to any more: what no record refers to then is removed without any condition, at any time, by
anybody. The argument stands in docs/decisions/0015-garbage.md. Nothing is judged by its age.
"""

import asyncio
import hashlib
from collections.abc import Callable, Collection
from datetime import datetime

import msgspec
import numpy as np

from resources.artifact_store.artifact_key import generation_of
from resources.artifact_store.artifact_store import ArtifactStore
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.job_records import IngestJobs
from resources.document_state.workers import WorkerRecord, WorkerWatch
from resources.records.backend import RecordBackend
from resources.records.decoding import readable
from resources.records.record import Stamp, Write

KIND = "gc"
_KEY = "artifacts"
# So many artifacts that nobody refers to, and none that anybody does, are those of another state.
_BELIEVED = 20


class GcRecord(msgspec.Struct, frozen=True):
    """A collection under way: the generation it began, and what was held when it had begun.

    Attributes:
        generation: the one it began.
        held: what each worker held then.
        unknown: workers of which a damaged record did not say: they have let go when they are gone.
    """

    generation: int
    held: dict[str, tuple[str, ...]]
    unknown: tuple[str, ...] = ()


class Collected(msgspec.Struct):
    """What a collection did, or would do.

    Attributes:
        n_artifacts, n_bytes: what was removed.
        n_kept: artifacts that stay.
        n_jobs: old jobs that were removed with their results.
        n_workers: workers that are still at what they held when it began, or of which a damaged record does not say
            what they hold; no artifact was removed then.
        refused: no record refers to any artifact, which looks like another state's: none was removed.
        n_damaged: records that cannot be read, and may refer to any artifact: none was removed.
    """

    n_artifacts: int = 0
    n_bytes: int = 0
    n_kept: int = 0
    n_jobs: int = 0
    n_workers: int = 0
    refused: bool = False
    n_damaged: int = 0


async def collect(
    state: DocumentStateStore,
    artifacts: ArtifactStore,
    backend: RecordBackend,
    advance: Callable[[int], None],
    *,
    dry_run: bool = False,
) -> Collected:
    """One collection, or as much of it as can be done while others work; the next call goes on with it.

    Args:
        state: whose records say what is needed.
        artifacts: what is gone through.
        backend: of the state.
        advance: told how many artifacts were looked at.
        dry_run: only count what nobody refers to now.
    """
    if dry_run:
        return await _mark_and_sweep(state, artifacts, None, advance)
    record, stamp = await _begun(artifacts, backend)
    if n_workers := await _n_waiting(record, backend):
        return Collected(n_workers=n_workers)
    collected = await _mark_and_sweep(state, artifacts, record.generation, advance)
    await backend.compare_and_set(KIND, [Write(_KEY, None, stamp)])
    return collected


async def remove_old_jobs(jobs: IngestJobs, before: datetime, *, dry_run: bool = False) -> int:
    """Remove what is kept of jobs that ended before a time; gives how many there were. What they did stays."""
    old = await jobs.ended_before(before)
    if not dry_run:
        for job in old:
            await jobs.remove(job)
    return len(old)


async def _begun(artifacts: ArtifactStore, backend: RecordBackend) -> tuple[GcRecord, Stamp]:
    """The collection that is under way, or a new one. Of two that begin at once both go on with the first."""
    while True:
        found = await backend.read(KIND, _KEY)
        # One that is damaged is begun anew: a later generation with its fence is as good.
        if found is not None and (record := readable(backend.uri, KIND, found, GcRecord, "It is begun anew.")):
            return record, found.stamp
        generation = await asyncio.to_thread(artifacts.begin_generation)
        # Whoever holds a document from now on gives keys of the new generation.
        workers = await WorkerWatch(backend).all()
        held = {worker.worker_id: worker.claimed for worker in workers if worker.claimed}
        unknown = tuple(worker.worker_id for worker in workers if worker.damaged)
        record = GcRecord(generation, held, unknown)
        write = Write(_KEY, msgspec.json.encode(record), found.stamp if found else None)
        await backend.compare_and_set(KIND, [write])


async def _n_waiting(record: GcRecord, backend: RecordBackend) -> int:
    """How many workers have not let go yet of all that they held when the generation had begun."""
    now = {worker.worker_id: worker for worker in await WorkerWatch(backend).all()}
    holding = [
        worker_id for worker_id, held in record.held.items() if worker_id in now and _may_hold(now[worker_id], held)
    ]
    return len(holding) + sum(worker_id in now for worker_id in record.unknown)


def _may_hold(worker: WorkerRecord, held: Collection[str]) -> bool:
    return worker.damaged or not set(held).isdisjoint(worker.claimed)


async def _mark_and_sweep(
    state: DocumentStateStore, artifacts: ArtifactStore, generation: int | None, advance: Callable[[int], None]
) -> Collected:
    """Remove what no record refers to of the generations before one; None: only count."""
    marks = await _marks(state)
    if state.damaged:
        return Collected(n_damaged=len(state.damaged))
    return await _sweep(artifacts, marks, generation, advance)


async def _marks(state: DocumentStateStore) -> np.ndarray:
    """What every record refers to that can be read, as sorted short hashes of the keys, 8 bytes each."""
    marks = bytearray()
    async for doc in state.iter_statuses():
        if doc.artifact:
            marks += _mark(doc.artifact)
    return np.sort(np.frombuffer(bytes(marks), dtype=np.uint64)) if marks else np.empty(0, dtype=np.uint64)


async def _sweep(
    artifacts: ArtifactStore, marks: np.ndarray, generation: int | None, advance: Callable[[int], None]
) -> Collected:
    """Remove what is not marked of the generations before one; None: only count."""
    result = Collected()
    for page in filter(None, artifacts.pages()):
        given = np.frombuffer(b"".join(_mark(kept.key) for kept in page), dtype=np.uint64)
        needed = np.isin(given, marks)
        closed = [generation is None or generation_of(kept.key) < generation for kept in page]
        judged = zip(page, needed, closed, strict=True)
        garbage = [kept for kept, is_needed, is_closed in judged if is_closed and not is_needed]
        if not len(marks) and result.n_kept + len(garbage) > _BELIEVED:
            return Collected(refused=True)
        if generation is not None:
            await asyncio.to_thread(artifacts.remove_many, [kept.key for kept in garbage])
        result.n_artifacts += len(garbage)
        result.n_bytes += sum(kept.n_bytes for kept in garbage)
        result.n_kept += len(page) - len(garbage)
        advance(len(page))
    return result


def _mark(key: str) -> bytes:
    """A short hash. Two keys that share one by accident keep garbage, and never cost what is needed."""
    return hashlib.blake2b(key.encode(), digest_size=8).digest()
