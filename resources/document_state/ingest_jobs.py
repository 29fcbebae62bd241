"""What an ingest job is: one request, its documents, its outcome counted while it runs."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from resources.document_source.document_ids import document_id
from resources.document_state.process_identity import ProcessIdentity
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Mode


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
    WAITING = "waiting"  # for money that other batches have reserved
    EXTRACTING = "extracting"  # the model is asked
    PERSISTING = "persisting"  # artifacts, records and stores are written


class Errand(StrEnum):
    """What a job does before it works on documents."""

    NONE = ""
    LISTING = "listing"  # the sources are listed, and that is all
    INGESTING = "ingesting"  # the sources are listed, and what is due then are its documents
    RESTORING = "restoring"  # its documents, which a person had deleted, come back


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
    artifact with its chunks and entries; "" if it has none. What its calls to a model cost is in tokens and millionths
    of a dollar; calls whose bill is unknown are in the ledger alone.
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
    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0

    def belongs_to(self, org_id: str) -> bool:
        """Whether the document is an organisation's: its id says so."""
        return self.document_id == document_id(org_id, self.source_uri)


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


class Listed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job's listing found.

    Attributes:
        n_new, n_changed, n_vanished: documents that became due by it.
        n_unchanged: objects that are as they were.
        n_missing: objects that are not listed, whose documents are left alone until the grace period is over.
        n_busy: changed objects whose document a worker holds; the next listing sees them again.
        doubts: why a source could not be listed, or was not believed; a sentence or two each.
        n_left_out: what lies in the sources and is no document.
    """

    n_new: int = 0
    n_changed: int = 0
    n_vanished: int = 0
    n_unchanged: int = 0
    n_missing: int = 0
    n_busy: int = 0
    doubts: tuple[str, ...] = ()
    n_left_out: int = 0

    @property
    def n_due(self) -> int:
        """How many documents became due by it."""
        return self.n_new + self.n_changed + self.n_vanished


class BatchEstimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the gate said to one batch: what it may cost, and why it was held back, or ""."""

    micro_usd: int
    refusal: str = ""


class IngestJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job's header; the documents asked for, the estimates and the results are records beside it.

    `n_requested` = `n_succeeded` + `n_failed` + `n_skipped` + `n_pending`. Documents that turned out complete, or in
    another worker's hands, were not requested: they count as `n_unchanged` and `n_busy`.

    Attributes:
        owner: the process that does it, or, while it is queued, answers for it.
        asked, stores: which kind of work somebody asked for, and where; "" and () for what is due.
        force: do every document again.
        pages_id: under which name its pages are kept; "": the job's own id.
        errand: what is done before; `listed`: what came of it, if it was a listing.
        asked_hash: what was asked, so that a repeated request is told from another one; "" where none is repeated.
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
    asked: str = ""
    stores: tuple[str, ...] = ()
    force: bool = False
    pages_id: str = ""
    asked_hash: str = ""
    errand: Errand = Errand.NONE
    listed: Listed | None = None
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

    @property
    def left_to(self) -> str:
        """Who does what it has not done, when it ended early."""
        if self.force:
            return f"`ingest run --continue {self.job_id}`"
        if self.asked or self.mode is Mode.RETRY_FAILED:
            return "the same request, asked again, and what it had begun by the next run"
        return "the next run, or by the same request, asked again" if self.errand else "the next run"


class UnknownJobError(KeyError):
    """No job has this id."""

    def __str__(self) -> str:
        return str(self.args[0])


def status_of(job: IngestJob) -> JobStatus:
    """How a job ended, by its counts."""
    if job.n_blocked_batches:
        return JobStatus.BLOCKED
    listed = job.listed or Listed()
    if job.n_failed == 0 and job.n_pending == 0 and not listed.doubts:
        return JobStatus.SUCCEEDED
    if job.n_succeeded + listed.n_due + listed.n_unchanged == 0:
        return JobStatus.FAILED
    return JobStatus.PARTIAL
