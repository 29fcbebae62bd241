"""A search box, and the chunks that are nearest to what was asked, in meaning and words."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ingest_assets.api.services import READS, Asking, Given
from ingest_assets.api.stores import Question
from ingest_assets.api.stores import search as found_by
from ingest_assets.page.rendering import page

router = APIRouter(prefix="/search", include_in_schema=False, dependencies=[READS])
_HITS = 10


@router.get("")
async def search(
    services: Given,
    caller: Asking,
    q: Annotated[str, Query(max_length=4000)] = "",
    store: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Hits with their chunk in its place."""
    answer = None
    if q.strip():
        answer = await found_by(Question(query=q, store=store, k=_HITS), services, caller)
    chosen = store or services.settings.default_store
    values = {"q": q, "store": chosen, "answer": answer, "store_names": services.store_names}
    return page("search.html", services, caller, values)
