"""Jobs as the API asks for them and shows them."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from ingest_assets.api.choosing import Filter
from ingest_assets.api.shapes import Shape
from resources.document_state.ingest_jobs import DocumentResult, Errand, IngestJob, JobStage, JobStatus, Outcome

MOST_IDS = 100_000


class WantedJob(Shape):
    """What is to be done, with documents named one by one or by a filter.

    `mode`: `chosen` brings them up to date in the stores, extraction included, or builds them there for the first time;
    `renewed` the same, but only where they belong already; `named` too, and extracts only what is owed; `stale`,
    `failed` and `missing` only where that is so.
    """

    document_ids: Annotated[tuple[Annotated[str, Field(max_length=128)], ...], Field(max_length=MOST_IDS)] | None = None
    filter: Filter | None = None
    stores: tuple[str, ...] = Field((), max_length=100, description="slugs; none for every store")
    mode: Literal["chosen", "renewed", "named", "stale", "failed", "missing"] = "chosen"


class WantedDocument(Shape):
    """Into which store one document is to be ingested; null for every store."""

    store_slug: str | None = None


class WantedListing(Shape):
    """What a listing of the sources is for."""

    ingest: bool = Field(default=False, description="do what is due then, as `ingest run` does; else only find it")


class ListedShape(Shape):
    """What a listing found.

    `nLeftOut`: what lies in the sources and is no document.
    `doubts`: why a source could not be listed, or was not believed, or lists what another one does.
    """

    n_new: int
    n_changed: int
    n_vanished: int
    n_unchanged: int
    n_missing: int
    n_busy: int
    n_left_out: int
    doubts: tuple[str, ...]


class JobShape(Shape):
    """A job: `nRequested` = `nSucceeded` + `nFailed` + `nSkipped` + `nPending`.

    `errand`: what it does before it works on documents: `listing` (and nothing else), `ingesting`, `restoring`; or "".
    `listed`: what came of a listing.
    """

    job_id: str
    status: JobStatus
    mode: str
    errand: Errand
    listed: ListedShape | None
    stores: tuple[str, ...]
    user_id: str
    n_requested: int
    n_succeeded: int
    n_failed: int
    n_skipped: int
    n_pending: int
    n_unchanged: int
    n_busy: int
    run_ids: tuple[str, ...]
    stage: JobStage | None
    estimated_usd: float
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str


class Accepted(Shape):
    """What became of a request for work. `job` is null if there is nothing to do."""

    job: JobShape | None
    n_busy: int = Field(0, description="documents that another worker has; they are left to it")


NOTHING_TO_DO: dict[int | str, dict[str, Any]] = {200: {"model": Accepted, "description": "There is nothing to do."}}


class Jobs(Shape):
    """The newest jobs, the newest first."""

    jobs: list[JobShape]


class ResultShape(Shape):
    """What a job made of one document."""

    document_id: str
    name: str
    outcome: Outcome
    run_id: str
    reason: str | None
    error: str
    what_to_do: str
    n_chunks: int
    n_entries: int
    seconds: float


class ResultPage(Shape):
    """Some results in the order they were recorded. `nextCursor` is null when there are no more yet."""

    results: list[ResultShape]
    next_cursor: str | None


def job_shape(job: IngestJob) -> JobShape:
    """A job's header."""
    return JobShape(
        job_id=job.job_id,
        status=job.status,
        mode=job.asked or job.mode,
        errand=job.errand,
        listed=ListedShape(**msgspec.structs.asdict(job.listed)) if job.listed else None,
        stores=job.stores,
        user_id=job.user_id,
        n_requested=job.n_requested,
        n_succeeded=job.n_succeeded,
        n_failed=job.n_failed,
        n_skipped=job.n_skipped,
        n_pending=job.n_pending,
        n_unchanged=job.n_unchanged,
        n_busy=job.n_busy,
        run_ids=job.run_ids,
        stage=job.stage,
        estimated_usd=job.estimated_micro_usd / 1_000_000,
        created_at=job.created_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        error_message=job.error_message,
    )


def result_shape(result: DocumentResult) -> ResultShape:
    """A document's result."""
    return ResultShape(
        document_id=result.document_id,
        name=result.filename,
        outcome=result.status,
        run_id=result.run_id,
        reason=result.reason,
        error=result.error,
        what_to_do=result.reason.what_to_do if result.reason else "",
        n_chunks=result.n_chunks,
        n_entries=result.n_entries,
        seconds=result.seconds,
    )
