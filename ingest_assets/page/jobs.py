"""Jobs: the newest ones, and one of them while it goes on."""

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse

from ingest_assets.api.jobs import cancel as cancel_job
from ingest_assets.api.jobs import job_of
from ingest_assets.api.jobs import retry as retry_job
from ingest_assets.api.problems import Problem
from ingest_assets.api.services import READS, WRITES, Asking, Given, Services
from ingest_assets.page.forms import Sent
from ingest_assets.page.rendering import Live, live, live_answer, page, query_of
from resources.clock import utc_now
from resources.counting import counted
from resources.document_state.ingest_jobs import DocumentResult, IngestJob, JobStage, JobStatus, Outcome
from resources.document_state.spend_book import ByModel, SpendTotals

router = APIRouter(prefix="/jobs", include_in_schema=False, dependencies=[READS])
JobId = Annotated[str, Path(max_length=64)]
Cursor = Annotated[str, Query(max_length=200)]
Seen = Annotated[str, Query(max_length=64)]
_RECENT = 50
_ON_A_PAGE = 100
# What is shown first of a job's documents: what a person may have to do something about, the worst first.
_FIRST = [Outcome.FAILED, Outcome.PENDING, Outcome.SKIPPED]


@router.get("")
async def jobs(services: Given, caller: Asking) -> Response:
    """The newest jobs."""
    return page("jobs.html", services, caller, {"listed": (await _listed(services, caller.org_id)).html})


@router.get("/newest")
async def newest(services: Given, caller: Asking, seen: Seen = "") -> Response:
    """The newest jobs as they stand now, where the page shows them."""
    return live_answer(await _listed(services, caller.org_id), seen)


@router.get("/{job_id}")
async def job(
    job_id: JobId, services: Given, caller: Asking, only: Annotated[Outcome | None, Query()] = None, cursor: Cursor = ""
) -> Response:
    """One job."""
    found = await job_of(services, caller, job_id)
    values = {
        "job": found,
        "progress": (await _progress(services, found)).html,
        "results": (await _results(services, found, caller.org_id, only, cursor)).html,
        "repeat_key": uuid.uuid4().hex,
    }
    return page("job.html", services, caller, values)


@router.get("/{job_id}/progress")
async def progress(job_id: JobId, services: Given, caller: Asking, seen: Seen = "") -> Response:
    """How it goes, where its page shows it."""
    return live_answer(await _progress(services, await job_of(services, caller, job_id)), seen)


@router.get("/{job_id}/results")
async def results(
    job_id: JobId,
    services: Given,
    caller: Asking,
    only: Annotated[Outcome | None, Query()] = None,
    cursor: Cursor = "",
    seen: Seen = "",
) -> Response:
    """What became of its documents so far, where its page shows it."""
    found = await job_of(services, caller, job_id)
    return live_answer(await _results(services, found, caller.org_id, only, cursor), seen)


@router.post("/{job_id}/cancel", dependencies=[WRITES])
async def cancel(job_id: JobId, services: Given, caller: Asking) -> Response:
    """Stop it."""
    await cancel_job(job_id, services, caller)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.post("/{job_id}/retry", dependencies=[WRITES])
async def retry(job_id: JobId, services: Given, caller: Asking, sent: Sent) -> Response:
    """Have done by a new job what this one has not, and show that."""
    begun = await retry_job(job_id, services, caller, Response(), sent.one("key"))
    if begun.job is None:
        raise Problem(409, "nothing-to-do", "Nothing is left of this job.", "Every document of it is done by now.")
    return RedirectResponse(f"/jobs/{begun.job.job_id}", 303)


async def _listed(services: Services, org_id: str) -> Live:
    found = await services.components.jobs.recent(_RECENT, org_id)
    said = f"{counted(sum(not job.is_terminal for job in found), 'job')} running"
    return live("jobs_listed.html", "listed", "/jobs/newest", {"jobs": found, "said": said})


async def _progress(services: Services, job: IngestJob) -> Live:
    if not job.is_terminal:
        await services.components.jobs.settle_orphans(utc_now())
        job = await services.components.jobs.get(job.job_id)
    values: dict[str, Any] = {
        "job": job,
        "n_done": job.n_succeeded + job.n_failed + job.n_skipped,
        "stages": _stages(job),
        "n_stages_done": _n_stages_done(job),
        "is_blocked": job.status is JobStatus.BLOCKED,
        "spent": _total(await services.components.ledger.of_job(job.job_id)),
        "store_names": services.store_names,
        "dagster_url": services.settings.api.dagster_url,
        "said": f"{job.status}: {job.n_succeeded + job.n_failed + job.n_skipped} of {job.n_requested} done",
    }
    return live("job_progress.html", "progress", f"/jobs/{job.job_id}/progress", values, _seconds(job))


async def _results(services: Services, job: IngestJob, org_id: str, only: Outcome | None, cursor: str) -> Live:
    found, behind = await _page_of_results(services, job.job_id, org_id, only, cursor)
    values = {
        "job": job,
        "results": sorted(found, key=lambda result: [result.status != first for first in _FIRST]),
        "only": only,
        "outcomes": [Outcome.FAILED, Outcome.SKIPPED, Outcome.PENDING, Outcome.SUCCEEDED],
        "cursor": cursor,
        "next": behind,
        "dagster_url": services.settings.api.dagster_url,
    }
    address = f"/jobs/{job.job_id}/results?{query_of({'only': only, 'cursor': cursor})}"
    return live("job_results.html", "results", address, values, _seconds(job))


async def _page_of_results(
    services: Services, job_id: str, org_id: str, only: Outcome | None, cursor: str
) -> tuple[list[DocumentResult], str]:
    """The next results behind a part that are asked for, in whole parts, and behind which part there may be more."""
    found: list[DocumentResult] = []
    while True:
        read, last = await services.components.jobs.results_behind(job_id, cursor, _ON_A_PAGE)
        found += [r for r in read if r.belongs_to(org_id) and only in (None, r.status)]
        is_end = len(read) < _ON_A_PAGE
        if is_end or len(found) >= _ON_A_PAGE:
            return found, "" if is_end else last
        cursor = last


def _stages(job: IngestJob) -> list[JobStage]:
    """The stages of a job; few ever have to wait."""
    return [stage for stage in JobStage if stage is not JobStage.WAITING or job.stage is stage]


def _n_stages_done(job: IngestJob) -> int:
    """How many stages a job has behind it: all when it is over, unless it was held back at one."""
    stages = _stages(job)
    if job.status is JobStatus.BLOCKED:
        return stages.index(JobStage.ESTIMATING)
    if job.is_terminal:
        return len(stages) if job.n_succeeded else 0
    return stages.index(job.stage) if job.stage else 0


def _seconds(job: IngestJob) -> int | None:
    """How often a page looks again; a job that is over does not change."""
    return None if job.is_terminal else 1


def _total(spent: ByModel) -> SpendTotals:
    total = SpendTotals()
    for totals in spent.values():
        total = total.plus(totals)
    return total
