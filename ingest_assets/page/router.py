"""Every route of the page."""

from fastapi import APIRouter

from ingest_assets.page import (
    correcting,
    document,
    jobs,
    library,
    listings,
    reference,
    reingest,
    search,
    spend,
    static_files,
    stores,
)

router = APIRouter()
for part in (static_files, library, document, correcting, reingest, listings, jobs, stores, spend, search, reference):
    router.include_router(part.router)
