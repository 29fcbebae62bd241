"""The API's OpenAPI document as a page for people."""

from fastapi import APIRouter, Request, Response

from ingest_assets.api.services import READS, Asking, Given
from ingest_assets.page.rendering import page

router = APIRouter(prefix="/docs", include_in_schema=False, dependencies=[READS])


@router.get("")
async def reference(request: Request, services: Given, caller: Asking) -> Response:
    """Every route with its parameters and answers, and every object with its fields."""
    document = request.app.openapi()
    values = {"paths": document["paths"], "objects": document["components"]["schemas"]}
    return page("reference.html", services, caller, values)
