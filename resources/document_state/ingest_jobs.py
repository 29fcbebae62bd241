"""Ingest jobs: one request each, its documents in pages, its outcome counted while it runs."""

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from resources.document_state.process_identity import ProcessIdentity, is_certainly_dead, this_process
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Mode
from resources.records.backend import RecordBackend
from resources.records.decoding import decoded
from resources.records.record import Record, Stamp, Write

KIND = "job"
_LARGEST_PIECE = 128 * 1024


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"  # no run has begun
    RUNNING = "running"  # it is being worked on
    SUCCEEDED = "succeeded"  # every document succeeded or was skipped
    PARTIAL = "partial"  # some failed
    FAILED = "failed"  # none succeeded
    BLOCKED = "blocked"  # a batch was held back, by the spend gate


class JobStage(StrEnum):
    """What a running job is at; the batches of a large one may be at several, then it is the latest."""

    PARSING = "parsing"  # bytes become chunks
    FILTERING = "filtering"  # what needs no call is left out
    ESTIMATING = "estimating"  # what the calls may cost
    EXTRACTING = "extracting"  # the model is asked
    PERSISTING = "persisting"  # artifacts, records and stores are written


class Outcome(StrEnum):
    """What a run made of one document."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    PENDING = "pending"  # given back undone
    REMOVED = "removed"  # gone from its source, and now from every store
    UNCHANGED = "unchanged"  # complete already
    BUSY = "busy"  # another worker has it


class DocumentResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job made of one document.

    `n_void_corrections`: corrections of texts that it does not have any more. `knowledge_document_id`: the key of the
    artifact with its chunks and entries; "" if it has none.
    """

    document_id: str
    source_uri: str
    filename: str
    status: Outcome
    run_id: str
    reason: Reason | None = None
    error: str = ""
    n_chunks: int = 0
    n_entries: int = 0
    seconds: float = 0.0
    n_void_corrections: int = 0
    knowledge_document_id: str = ""


class JobCounts(msgspec.Struct, frozen=True):
    """What became of a job's documents so far."""

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    unchanged: int = 0
    busy: int = 0

    @classmethod
    def of(cls, results: Sequence[DocumentResult]) -> "JobCounts":
        """Count results; a removed document is a success, one given back is still to be done."""
        found = Counter(result.status for result in results)
        return cls(
            found[Outcome.SUCCEEDED] + found[Outcome.REMOVED],
            found[Outcome.FAILED],
            found[Outcome.SKIPPED],
            found[Outcome.UNCHANGED],
            found[Outcome.BUSY],
        )

    def times(self, n: int) -> "JobCounts":
        """These counts, n times."""
        return JobCounts(*(value * n for value in msgspec.structs.astuple(self)))

    def plus(self, other: "JobCounts") -> "JobCounts":
        """The sum."""
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return JobCounts(*(a + b for a, b in zip(mine, others, strict=True)))


class BatchEstimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the gate said to one batch: what it may cost, and why it was held back, or ""."""

    micro_usd: int
    refusal: str = ""


class IngestJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job's header; the documents asked for, the estimates and the results are records beside it.

    `n_requested` = `n_succeeded` + `n_failed` + `n_skipped` + `n_pending`. Documents that turned out complete, or in
    another worker's hands, were not requested: they count as `n_unchanged` and `n_busy`.
    """

    job_id: str
    scope_id: str
    user_id: str
    mode: Mode
    created_at: datetime
    owner: ProcessIdentity
    n_pages: int = 0
    n_listed: int = 0
    n_unchanged_before: int = 0
    n_busy_before: int = 0
    status: JobStatus = JobStatus.RUNNING
    run_ids: tuple[str, ...] = ()
    completed_at: datetime | None = None
    error_message: str = ""
    counts: JobCounts = JobCounts()
    stage: JobStage | None = None
    started_at: datetime | None = None
    estimated_micro_usd: int = 0
    n_blocked_batches: int = 0

    @property
    def n_requested(self) -> int:
        """Documents it is to work on."""
        return self.n_listed - self.counts.unchanged - self.counts.busy

    @property
    def n_succeeded(self) -> int:
        """Documents done."""
        return self.counts.succeeded

    @property
    def n_failed(self) -> int:
        """Documents tried and not done."""
        return self.counts.failed

    @property
    def n_skipped(self) -> int:
        """Documents deliberately not done."""
        return self.counts.skipped

    @property
    def n_pending(self) -> int:
        """Documents still to be done."""
        return self.n_requested - self.n_succeeded - self.n_failed - self.n_skipped

    @property
    def n_unchanged(self) -> int:
        """Documents that were complete already."""
        return self.n_unchanged_before + self.counts.unchanged

    @property
    def n_busy(self) -> int:
        """Documents in another worker's hands."""
        return self.n_busy_before + self.counts.busy

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.completed_at is not None


class UnknownJobError(KeyError):
    """No job has this id."""

    def __str__(self) -> str:
        return str(self.args[0])


class IngestJobs:
    """Jobs as records of a backend.

    Counts are never added up by a write: each part of the results carries its counts as its label, so a part that was
    recorded twice counts once and a death between two writes cannot lose any.
    """

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend

    async def create(
        self, pages: Sequence[Sequence[str]], *, scope_id: str, user_id: str, mode: Mode, now: datetime,
        n_unchanged: int, n_busy: int,
    ) -> IngestJob:  # fmt: skip
        """A new job over pages of document ids. The header comes last, so a job that exists is whole."""
        job = IngestJob(
            uuid.uuid4().hex, scope_id, user_id, mode, now, this_process(), len(pages), sum(map(len, pages)),
            n_unchanged, n_busy,
        )  # fmt: skip
        requests = [Write(f"{number:06d}", msgspec.json.encode(page), None) for number, page in enumerate(pages)]
        await self._backend.compare_and_set(_request_kind(job.job_id), requests)
        await self._backend.compare_and_set(KIND, [_write(job, None)])
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
        record = await self._backend.read(_request_kind(job_id), f"{page:06d}")
        if record is None:
            raise UnknownJobError(f"Job '{job_id}' has no page {page}.")
        return decoded(self._backend.uri, _request_kind(job_id), record, list[str])

    async def add_run(self, job_id: str, run_id: str) -> None:
        """Note that a run works for a job."""
        await self._change(job_id, lambda job: msgspec.structs.replace(job, run_ids=(*job.run_ids, run_id)))

    async def start(self, job_id: str, now: datetime) -> None:
        """Note that a run works for a job; when the first one began is when it started."""

        def change(job: IngestJob) -> IngestJob:
            if job.is_terminal or job.started_at is not None:
                return job
            return msgspec.structs.replace(job, status=JobStatus.RUNNING, started_at=now)

        await self._change(job_id, change)

    async def enter(self, job_id: str, stage: JobStage) -> None:
        """Note what a job is at; where one that has ended was last stays."""
        await self._change(job_id, lambda job: job if job.is_terminal else msgspec.structs.replace(job, stage=stage))

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
        status = _status_of(counted)
        said = error_message or await self._refusal(counted)
        await self._change(
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
        keys = [record.key for record in await self._backend.list_open(KIND)]
        jobs = [self._decode(record) for record in (await self._backend.read_many(KIND, keys)).values()]
        return [job for job in jobs if not job.is_terminal and is_certainly_dead(job.owner)]

    async def settle_orphans(self, now: datetime) -> list[IngestJob]:
        """End the jobs whose process died, with what was done."""
        message = "The process that ran this job died. What it had not done is done by the next run."
        return [await self.settle(job.job_id, now, message) for job in await self.orphans()]

    async def results(self, job_id: str) -> list[DocumentResult]:
        """All results of a job, in the order they were recorded."""
        found: list[DocumentResult] = []
        async for record in self._backend.list_records(_result_kind(job_id)):
            found.extend(decoded(self._backend.uri, _result_kind(job_id), record, list[DocumentResult]))
        return found

    async def recent(self, limit: int) -> list[IngestJob]:
        """The newest jobs, newest first."""
        jobs = [self._decode(record) async for record in self._backend.list_records(KIND)]
        newest = sorted(jobs, key=lambda job: job.created_at, reverse=True)[:limit]
        return [await self._with_counts(job) for job in newest]

    async def count_by_status(self, scope_id: str) -> Counter[JobStatus]:
        """How many jobs of a scope have each status."""
        jobs = [self._decode(record) async for record in self._backend.list_records(KIND)]
        return Counter(job.status for job in jobs if job.scope_id == scope_id)

    def _decode(self, record: Record) -> IngestJob:
        return decoded(self._backend.uri, KIND, record, IngestJob)

    async def _read(self, job_id: str) -> tuple[IngestJob, Stamp]:
        record = await self._backend.read(KIND, job_id)
        if record is None:
            raise UnknownJobError(f"There is no job '{job_id}'. `ingest jobs` lists them.")
        return self._decode(record), record.stamp

    async def _change(self, job_id: str, change: Callable[[IngestJob], IngestJob]) -> None:
        while True:
            job, stamp = await self._read(job_id)
            new = change(job)
            if new == job:
                return
            if (await self._backend.compare_and_set(KIND, [_write(new, stamp)]))[0].written:
                return

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
            counts = counts.plus(JobCounts(*msgspec.json.decode(label)).times(n))
        micro_usd = n_blocked = 0
        for label, n in (await self._backend.count_labels(_estimate_kind(job.job_id))).items():
            of_each, is_blocked = msgspec.json.decode(label, type=tuple[int, int])
            micro_usd += n * of_each
            n_blocked += n * is_blocked
        return msgspec.structs.replace(job, counts=counts, estimated_micro_usd=micro_usd, n_blocked_batches=n_blocked)


def _write(job: IngestJob, stamp: Stamp | None) -> Write:
    header = msgspec.structs.replace(job, counts=JobCounts(), estimated_micro_usd=0, n_blocked_batches=0)
    value = msgspec.json.encode(header)
    return Write(job.job_id, value, stamp, label=job.status, open=not job.is_terminal)


def _request_kind(job_id: str) -> str:
    return f"job_request/{job_id}"


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


def _status_of(job: IngestJob) -> JobStatus:
    if job.n_blocked_batches:
        return JobStatus.BLOCKED
    if job.n_failed == 0 and job.n_pending == 0:
        return JobStatus.SUCCEEDED
    if job.n_succeeded == 0:
        return JobStatus.FAILED
    return JobStatus.PARTIAL
