"""Having the sources listed now."""

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from ingest_assets.api.job_shapes import WantedListing
from ingest_assets.api.listings import list_sources
from ingest_assets.api.services import WRITES, Asking, Given
from ingest_assets.page.forms import Sent

router = APIRouter(include_in_schema=False, dependencies=[WRITES])


@router.post("/listings")
async def listed(services: Given, caller: Asking, sent: Sent) -> RedirectResponse:
    """Begin it, and show its job. Sent twice it is the same one, as long as that goes on."""
    begun = await list_sources(services, caller, Response(), WantedListing(ingest=bool(sent.one("ingest"))))
    assert begun.job is not None
    return RedirectResponse(f"/jobs/{begun.job.job_id}", 303)
