"""The library: documents against stores, narrowed by facets, a page at a time."""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Response
from pydantic import Field, model_validator

from ingest_assets.api.document_shapes import DocumentCounts, DocumentPage
from ingest_assets.api.documents import PageOfFilter, counts, documents
from ingest_assets.api.services import READS, Asking, Given, Services
from ingest_assets.api.tokens import Caller
from ingest_assets.page.rendering import Live, live, live_answer, page, query_of
from resources.counting import counted
from resources.document_state.model import LinkState, Status

router = APIRouter(include_in_schema=False, dependencies=[READS])
_FACETS = ("source", "status", "reason", "store", "state", "text", "deleted")
_SECONDS = 5


class Chosen(PageOfFilter):
    """The filter as a form sends it: what is left open comes as an empty text. `seen` is what is shown already."""

    seen: Annotated[str, Field(max_length=64)] = ""

    @model_validator(mode="before")
    @classmethod
    def _without_what_is_open(cls, given: dict[str, Any]) -> dict[str, Any]:
        fields = {
            name: [each for each in value if each != ""] if isinstance(value, list) else value
            for name, value in given.items()
        }
        return {name: value for name, value in fields.items() if value not in ("", [])}

    @property
    def facets(self) -> dict[str, Any]:
        """What documents must have, as a query says it."""
        return {name: getattr(self, name) for name in _FACETS if getattr(self, name)}


class _Found(NamedTuple):
    page: DocumentPage
    counts: DocumentCounts


@router.get("/")
async def library(services: Given, caller: Asking, chosen: Annotated[Chosen, Query()]) -> Response:
    """The library."""
    found = await _found(services, caller, chosen)
    everything = await counts(services, caller, Chosen()) if chosen.facets else found.counts
    values = {
        "chosen": chosen,
        "everything": everything,
        "statuses": list(Status),
        "states": list(LinkState),
        "store_names": services.store_names,
        "results": _results(services, caller, chosen, found).html,
    }
    return page("library.html", services, caller, values)


@router.get("/documents")
async def results(services: Given, caller: Asking, chosen: Annotated[Chosen, Query()]) -> Response:
    """What the library's filter finds now."""
    return live_answer(_results(services, caller, chosen, await _found(services, caller, chosen)), chosen.seen)


async def _found(services: Services, caller: Caller, chosen: Chosen) -> _Found:
    return _Found(await documents(services, caller, chosen), await counts(services, caller, chosen))


def _results(services: Services, caller: Caller, chosen: Chosen, found: _Found) -> Live:
    values = {
        "chosen": chosen,
        "page": found.page,
        "counts": found.counts,
        "store_names": services.store_names,
        "sources": [
            source.name
            for source in services.settings.sources
            if (source.org_id or services.settings.org_id) == caller.org_id
        ],
        "said": counted(found.counts.total),
    }
    here = query_of({**chosen.facets, "cursor": chosen.cursor, "limit": chosen.limit})
    return live("library_results.html", "results", f"/documents?{here}", values, _SECONDS)
