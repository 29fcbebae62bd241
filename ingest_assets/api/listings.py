"""The route that has the sources listed now."""

import uuid

from fastapi import APIRouter, Response

from ingest_assets.api.asking_for_work import begun
from ingest_assets.api.job_shapes import Accepted, WantedListing, job_shape
from ingest_assets.api.services import WRITES, Asking, Given, Services
from ingest_assets.api.tokens import Caller
from resources.clock import utc_now
from resources.document_state.ingest_jobs import Errand, IngestJob
from resources.document_state.process_identity import this_process
from resources.document_state.take_up import Mode

router = APIRouter(prefix="/api", tags=["work"], dependencies=[WRITES])


@router.post("/listings", status_code=202)
async def list_sources(
    services: Given, caller: Asking, response: Response, wanted: WantedListing | None = None
) -> Accepted:
    """Have the sources listed by a job of its own: what is new, changed or gone. One under way is given back."""
    errand = Errand.INGESTING if wanted is not None and wanted.ingest else Errand.LISTING
    job = await _under_way(services, caller, errand)
    if job is None:
        new = IngestJob(
            uuid.uuid4().hex, caller.org_id, caller.user, Mode.INCREMENTAL, utc_now(), this_process(), errand=errand
        )
        job = await begun(services, new, ())
    response.headers["Location"] = f"/api/ingestion-jobs/{job.job_id}"
    return Accepted(job=job_shape(job))


async def _under_way(services: Services, caller: Caller, errand: Errand) -> IngestJob | None:
    """A job that has yet to list, or does it just now: another one would find the same."""
    for job in await services.components.jobs.under_way():
        if job.scope_id == caller.org_id and job.errand is errand and job.listed is None:
            return job
    return None
