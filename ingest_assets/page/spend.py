"""What was spent, by day and model, against the ceilings."""

import asyncio
import os
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from ingest_assets.api.problems import Problem
from ingest_assets.api.services import READS, Asking, Given
from ingest_assets.page.rendering import page
from ingest_assets.settings import ConfigurationError, Settings, load_settings
from resources.clock import utc_now
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_ledger import day_of

router = APIRouter(prefix="/spend", include_in_schema=False, dependencies=[READS])


@router.get("")
async def spend(services: Given, caller: Asking, days: Annotated[int, Query(ge=1, le=366)] = 30) -> Response:
    """The last days, the newest first; what batches under way have reserved; the jobs that spent it."""
    if caller.org_id != services.settings.org_id:
        raise Problem(
            403, "not-yours", "What was spent is the project's own.", "Each of your jobs shows what it has spent."
        )
    now = utc_now()
    report = await services.components.ledger.report(day_of(now - timedelta(days=days - 1)))
    totals = {day: sum(each.micro_usd for each in models.values()) for day, models in report.days.items()}
    values = {
        "days": days,
        "today": day_of(now),
        "by_day": sorted(report.days.items(), reverse=True),
        "totals": totals,
        "jobs": report.jobs,
        "n_open": len(report.open),
        "reserved": sum(each.reservation.micro_usd for each in report.open),
        "ceilings": await asyncio.to_thread(_ceilings_now, services.settings),
    }
    return page("spend.html", services, caller, values)


def _ceilings_now(settings: Settings) -> Ceilings:
    """The ceilings that the next job keeps: it reads the configuration when it begins, and the server did long ago."""
    if settings.config_file is None:
        return settings.ceilings
    try:
        return load_settings({**os.environ, "INGEST_CONFIG": str(settings.config_file)}).ceilings
    except ConfigurationError:
        return settings.ceilings
