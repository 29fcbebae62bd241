"""Ingest jobs as records: the header, the pages of documents asked for, the estimates, and the results in parts."""

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from resources.document_state.ingest_jobs import (
    BatchEstimate,
    DocumentResult,
    IngestJob,
    JobCounts,
    JobStage,
    JobStatus,
    Outcome,
    UnknownJobError,
    status_of,
)
from resources.document_state.process_identity import is_certainly_dead, this_process
from resources.document_state.take_up import Mode
from resources.records.backend import RecordBackend
from resources.records.decoding import decoded, readable
from resources.records.record import Record, Stamp, Write

T = TypeVar("T")

_logger = logging.getLogger(__name__)

KIND = "job"
_LARGEST_PIECE = 128 * 1024
_LEFT_OUT = "Lists leave it out; what it had not done is done by the next run."


class IngestJobs:
    """Jobs as records of a backend.

    Counts are never added up by a write: each part of the results carries its counts as its label, so a part that was
    recorded twice counts once and a death between two writes cannot lose any.

    A damaged job stops nobody but who asks for it by its id: lists and counts leave it out, and a warning names it.
    """

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend

    async def create(
        self, pages: Sequence[Sequence[str]], *, scope_id: str, user_id: str, mode: Mode, now: datetime,
        n_unchanged: int, n_busy: int, asked: str = "", stores: tuple[str, ...] = (), force: bool = False,
    ) -> IngestJob:  # fmt: skip
        """A new job over pages of document ids, of which this process begins at once."""
        job = IngestJob(
            uuid.uuid4().hex, scope_id, user_id, mode, now, this_process(), len(pages), sum(map(len, pages)),
            n_unchanged, n_busy, asked, stores, force,
        )  # fmt: skip
        await self.store(job, pages)
        return job

    async def get(self, job_id: str) -> IngestJob:
        """A job with its counts as they stand.

        Raises:
            UnknownJobError: no job has this id.
        """
        job, _ = await self._read(job_id)
        return await self._with_counts(job)

    async def documents(self, job_id: str, page: int) -> list[str]:
        """The document ids of one page of a job's request."""
        job, _ = await self._read(job_id)
        kind = _request_kind(job)
        record = await self._backend.read(kind, f"{page:06d}")
        if record is None:
            raise UnknownJobError(f"Job '{job_id}' has no page {page}.")
        return decoded(self._backend.uri, kind, record, list[str])

    async def add_run(self, job_id: str, run_id: str) -> None:
        """Note that a run works for a job."""
        await self.change(job_id, lambda job: msgspec.structs.replace(job, run_ids=(*job.run_ids, run_id)))

    async def give(self, job_id: str, pages: Sequence[Sequence[str]], n_unchanged: int, n_busy: int) -> IngestJob:
        """Give documents to a job that has none yet, found by its errand. Pages go first, as in `store`."""
        job, _ = await self._read(job_id)
        await self._keep_pages(job, pages)
        return await self.change(
            job_id,
            lambda job: msgspec.structs.replace(
                job,
                n_pages=len(pages),
                n_listed=sum(map(len, pages)),
                n_unchanged_before=n_unchanged,
                n_busy_before=n_busy,
            ),
        )

    async def start(self, job_id: str, now: datetime) -> None:
        """Note that a run works for a job; when the first one began is when it started."""

        def change(job: IngestJob) -> IngestJob:
            if job.is_terminal or job.started_at is not None:
                return job
            return msgspec.structs.replace(job, status=JobStatus.RUNNING, started_at=now)

        await self.change(job_id, change)

    async def enter(self, job_id: str, stage: JobStage) -> None:
        """Note what a job is at; where one that has ended was last stays."""
        await self.change(job_id, lambda job: job if job.is_terminal else msgspec.structs.replace(job, stage=stage))

    async def estimate(self, job_id: str, part: str, estimate: BatchEstimate) -> None:
        """Add what the gate said to a batch; `part` names it in the job. Its first word stands."""
        label = msgspec.json.encode([estimate.micro_usd, int(bool(estimate.refusal))]).decode()
        write = Write(part, msgspec.json.encode(estimate), None, label=label)
        await self._backend.compare_and_set(_estimate_kind(job_id), [write])

    async def record(self, job_id: str, part: str, results: Sequence[DocumentResult]) -> None:
        """Add what a run made of some documents; `part` names them among the job's results and orders them."""
        writes = []
        for number, piece in enumerate(_pieces(results)):
            label = msgspec.json.encode(msgspec.structs.astuple(JobCounts.of(piece))).decode()
            writes.append(Write(f"{part}/{number:03d}", msgspec.json.encode(piece), None, label=label))
        await self._backend.compare_and_set(_result_kind(job_id), writes)

    async def settle(self, job_id: str, now: datetime, error_message: str = "") -> IngestJob:
        """End a job and say how it ended. Safe to repeat."""
        counted = await self.get(job_id)
        status = status_of(counted)
        said = error_message or await self._refusal(counted)
        await self.change(
            job_id,
            lambda job: (
                job
                if job.is_terminal
                else msgspec.structs.replace(job, status=status, completed_at=now, error_message=said)
            ),
        )
        return await self.get(job_id)

    async def orphans(self) -> list[IngestJob]:
        """Running jobs whose process died on this machine."""
        return [job for job in await self.under_way() if is_certainly_dead(job.owner)]

    async def under_way(self) -> list[IngestJob]:
        """Jobs that have not ended, without counts."""
        keys = [record.key for record in await self._backend.list_open(KIND)]
        records = await self._backend.read_many(KIND, keys)
        jobs = [job for record in records.values() if (job := self._readable(record)) is not None]
        return [job for job in jobs if not job.is_terminal]

    async def settle_orphans(self, now: datetime) -> list[IngestJob]:
        """End the jobs whose process died, with what was done."""
        message = "The process that ran this job died. What it had not done is done by"
        return [await self.settle(job.job_id, now, f"{message} {job.left_to}.") for job in await self.orphans()]

    async def results(self, job_id: str) -> list[DocumentResult]:
        """All results of a job, in the order they were recorded."""
        found: list[DocumentResult] = []
        async for record in self._backend.list_records(_result_kind(job_id)):
            found.extend(decoded(self._backend.uri, _result_kind(job_id), record, list[DocumentResult]))
        return found

    async def results_behind(self, job_id: str, part: str, at_least: int) -> tuple[list[DocumentResult], str]:
        """The next results behind a part, in whole parts, and the last of these; as many as that if there are.

        What is recorded later comes behind, so going on from there misses none.
        """
        found: list[DocumentResult] = []
        async for record in self._backend.list_records(_result_kind(job_id), after=part):
            found.extend(decoded(self._backend.uri, _result_kind(job_id), record, list[DocumentResult]))
            part = record.key
            if len(found) >= at_least:
                break
        return found, part

    async def left_by(self, job: IngestJob, unsettled: Collection[Outcome]) -> list[str]:
        """The documents a job was about and did not come to, or for which its last word is one of these outcomes."""
        last = {result.document_id: result.status for result in await self.results(job.job_id)}
        pages = [await self.documents(job.job_id, page) for page in range(job.n_pages)]
        return [key for page in pages for key in page if key not in last or last[key] in unsettled]

    async def recent(self, limit: int, scope_id: str | None = None) -> list[IngestJob]:
        """The newest jobs, of all scopes or one, newest first."""
        jobs = [job for job in await self._all() if scope_id in (None, job.scope_id)]
        newest = sorted(jobs, key=lambda job: job.created_at, reverse=True)[:limit]
        return [await self._with_counts(job) for job in newest]

    async def count_by_status(self, scope_id: str) -> Counter[JobStatus]:
        """How many jobs of a scope have each status."""
        return Counter(job.status for job in await self._all() if job.scope_id == scope_id)

    async def _all(self) -> list[IngestJob]:
        """All jobs that can be read, without counts."""
        records = self._backend.list_records(KIND)
        return [job async for record in records if (job := self._readable(record)) is not None]

    def _readable(self, record: Record) -> IngestJob | None:
        return readable(self._backend.uri, KIND, record, IngestJob, _LEFT_OUT)

    def _decode(self, record: Record) -> IngestJob:
        return decoded(self._backend.uri, KIND, record, IngestJob, _LEFT_OUT)

    async def forget_pages(self, job: IngestJob) -> None:
        """Remove the pages of a job that came to nothing."""
        await self._remove_all(_request_kind(job))

    async def ended_before(self, moment: datetime) -> list[IngestJob]:
        """Jobs that ended before a time, as their headers say."""
        return [job for job in await self._all() if job.completed_at is not None and job.completed_at < moment]

    async def damaged_and_ended(self) -> list[Record]:
        """The records of jobs that had ended, as the mark beside their value says, and cannot be read."""
        records = self._backend.list_records(KIND)
        return [record async for record in records if not record.open and self._readable(record) is None]

    async def remove_damaged(self, record: Record) -> None:
        """Remove a job that cannot be read; pages under a name that its record alone knew stay."""
        for kind in (_result_kind(record.key), _estimate_kind(record.key), f"job_request/{record.key}"):
            await self._remove_all(kind)
        await self._backend.compare_and_set(KIND, [Write(record.key, None, record.stamp)])

    async def remove(self, job: IngestJob) -> None:
        """Remove a job that has ended. The header goes last: by it, who dies before is followed by somebody."""
        for kind in (_result_kind(job.job_id), _estimate_kind(job.job_id), _request_kind(job)):
            await self._remove_all(kind)
        record = await self._backend.read(KIND, job.job_id)
        if record is not None:
            await self._backend.compare_and_set(KIND, [Write(job.job_id, None, record.stamp)])

    async def _remove_all(self, kind: str) -> None:
        stamps = [(record.key, record.stamp) async for record in self._backend.list_records(kind)]
        await self._backend.compare_and_set(kind, [Write(key, None, stamp) for key, stamp in stamps])

    async def _read(self, job_id: str) -> tuple[IngestJob, Stamp]:
        record = await self._backend.read(KIND, job_id)
        if record is None:
            raise UnknownJobError(f"There is no job '{job_id}'. `ingest jobs` lists them.")
        return self._decode(record), record.stamp

    async def store(self, job: IngestJob, pages: Sequence[Sequence[str]]) -> bool:
        """Keep a job unless there is one of its id. The header comes last, so a job that exists is whole."""
        await self._keep_pages(job, pages)
        return (await self._backend.compare_and_set(KIND, [_write(job, None)]))[0].written

    async def _keep_pages(self, job: IngestJob, pages: Sequence[Sequence[str]]) -> None:
        requests = [Write(f"{number:06d}", msgspec.json.encode(page), None) for number, page in enumerate(pages)]
        await self._backend.compare_and_set(_request_kind(job), requests)

    async def change(self, job_id: str, change: Callable[[IngestJob], IngestJob]) -> IngestJob:
        """Replace a job's header by what a function makes of it, however often others are first."""
        while True:
            job, stamp = await self._read(job_id)
            new = change(job)
            if new == job:
                return job
            if (await self._backend.compare_and_set(KIND, [_write(new, stamp)]))[0].written:
                return new

    async def _refusal(self, job: IngestJob) -> str:
        """What the first batch that was held back was told; "" if none was."""
        if job.n_blocked_batches:
            kind = _estimate_kind(job.job_id)
            async for record in self._backend.list_records(kind):
                if refusal := decoded(self._backend.uri, kind, record, BatchEstimate).refusal:
                    return refusal
        return ""

    async def _with_counts(self, job: IngestJob) -> IngestJob:
        counts = JobCounts()
        for label, n in (await self._backend.count_labels(_result_kind(job.job_id))).items():
            if (counted := self._counted(job, label, tuple[int, int, int, int, int])) is not None:
                counts = counts.plus(JobCounts(*counted).times(n))
        micro_usd = n_blocked = 0
        for label, n in (await self._backend.count_labels(_estimate_kind(job.job_id))).items():
            if (estimated := self._counted(job, label, tuple[int, int])) is not None:
                micro_usd += n * estimated[0]
                n_blocked += n * estimated[1]
        return msgspec.structs.replace(job, counts=counts, estimated_micro_usd=micro_usd, n_blocked_batches=n_blocked)

    def _counted(self, job: IngestJob, label: str, as_type: type[T]) -> T | None:
        """What a label counts; None, and a warning, where it is damaged: its documents count as not done."""
        try:
            return msgspec.json.decode(label, type=as_type)
        except msgspec.MsgspecError as error:
            _logger.warning("Job '%s': a part of its counts cannot be read and is left out: %s", job.job_id, error)
            return None


def _write(job: IngestJob, stamp: Stamp | None) -> Write:
    header = msgspec.structs.replace(job, counts=JobCounts(), estimated_micro_usd=0, n_blocked_batches=0)
    value = msgspec.json.encode(header)
    return Write(job.job_id, value, stamp, label=job.status, open=not job.is_terminal)


def _request_kind(job: IngestJob) -> str:
    return f"job_request/{job.pages_id or job.job_id}"


def _estimate_kind(job_id: str) -> str:
    return f"job_estimate/{job_id}"


def _result_kind(job_id: str) -> str:
    return f"job_result/{job_id}"


def _pieces(results: Sequence[DocumentResult]) -> list[list[DocumentResult]]:
    """Results in pieces that any backend holds as a record: names of documents may be long."""
    pieces: list[list[DocumentResult]] = [[]]
    size = 0
    for result in results:
        size += len(msgspec.json.encode(result))
        if size > _LARGEST_PIECE and pieces[-1]:
            pieces.append([])
            size = 0
        pieces[-1].append(result)
    return pieces
