"""What was spent, by day and model."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from ingest_assets.api.services import READS, Asking, Given
from ingest_assets.page.rendering import page
from resources.document_state.document_state_store import utc_now
from resources.document_state.spend_ledger import day_of

router = APIRouter(prefix="/spend", include_in_schema=False, dependencies=[READS])


@router.get("")
async def spend(services: Given, caller: Asking, days: Annotated[int, Query(ge=1, le=366)] = 30) -> Response:
    """The last days, the newest first; what batches under way have reserved; the jobs that spent it."""
    now = utc_now()
    report = await services.components.ledger.report(day_of(now - timedelta(days=days - 1)))
    values = {
        "days": days,
        "today": day_of(now),
        "by_day": sorted(report.days.items(), reverse=True),
        "jobs": report.jobs,
        "open": report.open,
        "reserved": sum(each.reservation.micro_usd for each in report.open),
        "most": max((sum(each.micro_usd for each in models.values()) for models in report.days.values()), default=0),
    }
    return page("spend.html", services, caller, values)
