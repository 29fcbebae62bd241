"""Routes that have work done, and show how it goes."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from ingest_assets.api.asking_for_work import accepted
from ingest_assets.api.choosing import check_version, document_of
from ingest_assets.api.job_events import MEDIA_TYPE, events_of
from ingest_assets.api.job_shapes import (
    NOTHING_TO_DO,
    Accepted,
    Jobs,
    JobShape,
    ResultPage,
    WantedDocument,
    WantedJob,
    job_shape,
    result_shape,
)
from ingest_assets.api.problems import Problem
from ingest_assets.api.services import READS, WRITES, Asking, Given, Services
from ingest_assets.api.tokens import Caller
from ingest_assets.requests.asking import Kind
from resources.clock import utc_now
from resources.document_state.ingest_jobs import IngestJob, JobStatus, Outcome, UnknownJobError
from resources.document_state.process_identity import interrupt

router = APIRouter(prefix="/api", tags=["work"])
RepeatKey = Annotated[
    str, Header(alias="Idempotency-Key", max_length=200, description="repeated with the same: still one job")
]
_LONGEST_ID = 64
_CANCELLED = "It was cancelled before it began."
# What a job that is retried asks for, by what it asked for at first: as much as then, of documents in whatever state.
_AGAIN: dict[str, Literal["chosen", "renewed"]] = {
    Kind.CHOSEN: "chosen",
    Kind.RENEWED: "renewed",
    Kind.STALE: "renewed",
}


@router.post("/ingestion/{document_id}", status_code=202, dependencies=[WRITES], responses=NOTHING_TO_DO)
async def ingest_document(
    document_id: str,
    services: Given,
    caller: Asking,
    response: Response,
    wanted: WantedDocument | None = None,
    if_match: Annotated[str, Header(description="the ETag the record must have")] = "",
    idempotency_key: RepeatKey = "",
) -> Accepted:
    """Have one document ingested, into one store or all."""
    doc = await document_of(services, caller, document_id)
    check_version(doc, if_match)
    stores = (wanted.store_slug,) if wanted is not None and wanted.store_slug is not None else ()
    return await _ask(
        services, caller, WantedJob(document_ids=(document_id,), stores=stores), idempotency_key, response
    )


@router.post("/ingestion-jobs", status_code=202, dependencies=[WRITES], responses=NOTHING_TO_DO)
async def ask_for_job(
    wanted: WantedJob, services: Given, caller: Asking, response: Response, idempotency_key: RepeatKey = ""
) -> Accepted:
    """Have many documents ingested. The answer comes at once; a process of its own does the work."""
    return await _ask(services, caller, wanted, idempotency_key, response)


@router.get("/ingestion-jobs", dependencies=[READS])
async def jobs(services: Given, caller: Asking, limit: Annotated[int, Query(ge=1, le=200)] = 20) -> Jobs:
    """The newest jobs."""
    found = await services.components.jobs.recent(limit, caller.org_id)
    return Jobs(jobs=[job_shape(job) for job in found])


@router.get("/ingestion-jobs/{job_id}", dependencies=[READS])
async def job(job_id: str, services: Given, caller: Asking) -> JobShape:
    """A job with its counts as they stand."""
    return job_shape(await job_of(services, caller, job_id))


@router.get("/ingestion-jobs/{job_id}/results", dependencies=[READS])
async def results(
    job_id: str,
    services: Given,
    caller: Asking,
    cursor: Annotated[str, Query(max_length=200, description="`nextCursor` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=5_000, description="at least so many, in whole groups")] = 200,
) -> ResultPage:
    """What became of its documents, also while it goes on: what is recorded later comes behind."""
    await job_of(services, caller, job_id)
    found, last = await services.components.jobs.results_behind(job_id, cursor, limit)
    shown = [result_shape(result) for result in found if result.belongs_to(caller.org_id)]
    return ResultPage(results=shown, next_cursor=last if len(found) >= limit else None)


@router.get(
    "/ingestion-jobs/{job_id}/events",
    dependencies=[READS],
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def events(
    job_id: str,
    services: Given,
    caller: Asking,
    last_event_id: Annotated[str, Header(max_length=200, description="go on behind this event")] = "",
) -> StreamingResponse:
    """Server-sent events: `stage`, `progress`, `outcome` of each document, `end`."""
    await job_of(services, caller, job_id)
    stream = events_of(services.components.jobs, job_id, caller.org_id, last_event_id)
    return StreamingResponse(stream, media_type=MEDIA_TYPE)


@router.post("/ingestion-jobs/{job_id}/cancel", status_code=202, dependencies=[WRITES])
async def cancel(job_id: str, services: Given, caller: Asking) -> JobShape:
    """Stop a job as Ctrl-C does: what it holds is released, what is done stays. One that is over stays as it is."""
    found = await job_of(services, caller, job_id)
    if found.status is JobStatus.QUEUED:
        found = await services.components.accepted_jobs.call_off(job_id, utc_now(), _CANCELLED)
    if not found.is_terminal and not interrupt(found.owner):
        await services.components.jobs.settle_orphans(utc_now())
        found = await job_of(services, caller, job_id)
        if not found.is_terminal:
            raise Problem(
                409,
                "elsewhere",
                "The job runs on another machine or in another container.",
                "Cancel it there: Ctrl-C in its terminal, or terminate its runs in the Dagster UI.",
            )
    return job_shape(found)


@router.post("/ingestion-jobs/{job_id}/retry", status_code=202, dependencies=[WRITES], responses=NOTHING_TO_DO)
async def retry(
    job_id: str, services: Given, caller: Asking, response: Response, idempotency_key: RepeatKey = ""
) -> Accepted:
    """Have the documents of a job that failed, or that it did not come to, done by a new one."""
    found = await job_of(services, caller, job_id)
    if not found.is_terminal:
        raise Problem(409, "not-over", "The job is not over.", "Wait for its end, or cancel it first.")
    left = await services.components.jobs.left_by(found, (Outcome.FAILED, Outcome.PENDING, Outcome.BUSY))
    docs = await services.components.state.get_many(left)
    ours = tuple(key for key in left if key in docs and docs[key].org_id == caller.org_id)
    if not ours:
        response.status_code = 200
        return Accepted(job=None)
    return await _ask(
        services,
        caller,
        WantedJob(document_ids=ours, stores=found.stores, mode=_AGAIN.get(found.asked, "named")),
        idempotency_key,
        response,
    )


async def _ask(
    services: Services, caller: Caller, wanted: WantedJob, idempotency_key: str, response: Response
) -> Accepted:
    job, chosen = await accepted(services, caller, wanted, idempotency_key)
    if job is None:
        response.status_code = 200
        return Accepted(job=None, n_busy=chosen.n_busy)
    response.headers["Location"] = f"/api/ingestion-jobs/{job.job_id}"
    return Accepted(job=job_shape(job), n_busy=chosen.n_busy)


async def job_of(services: Services, caller: Caller, job_id: str) -> IngestJob:
    """A job of the caller's organisation."""
    job = await services.components.jobs.get(job_id[:_LONGEST_ID])
    if job.scope_id != caller.org_id:
        raise UnknownJobError(f"There is no job '{job_id}'. `ingest jobs` lists them.")
    return job
