"""The stores there are, and how many documents stand how in each."""

import asyncio

from fastapi import APIRouter, Response

from ingest_assets.api.choosing import counted
from ingest_assets.api.services import READS, Asking, Given
from ingest_assets.page.rendering import page
from ingest_assets.upkeep.store_listing import list_stores
from resources.document_state.model import GONE, LinkState

router = APIRouter(prefix="/stores", include_in_schema=False, dependencies=[READS])


@router.get("")
async def stores(services: Given, caller: Asking) -> Response:
    """Every store, also those that are no longer configured."""
    counts: dict[str, dict[LinkState, int]] = {}
    labels = await counted(services, caller, lambda label: label.presence not in GONE)
    for label, n in labels.items():
        for slug, state, _ in label.links:
            of_store = counts.setdefault(slug, dict.fromkeys(LinkState, 0))
            of_store[state] += n
    pushed = await asyncio.to_thread(services.index.last_pushes, caller.org_id)
    values = {
        "stores": await list_stores(services.components, pushed),
        "counts": counts,
        "n_documents": sum(labels.values()),
        "states": list(LinkState),
    }
    return page("stores.html", services, caller, values)
