"""Which documents a request is about: facets, a store, a piece of a name; always of the caller's organisation."""

import asyncio
from typing import Annotated

from pydantic import Field

from ingest_assets.api.document_shapes import etag_of
from ingest_assets.api.problems import Problem, no_such_document
from ingest_assets.api.read_model.document_index import LabelFilter
from ingest_assets.api.services import Services
from ingest_assets.api.shapes import Shape
from ingest_assets.api.tokens import Caller
from ingest_assets.requests.asking import Where
from resources.document_state.label import DocumentLabel
from resources.document_state.model import GONE, DocStatus, LinkState, Presence, Status
from resources.document_state.reasons import Reason

LONGEST_ID = 128
_LONGEST_TEXT = 200


class Filter(Shape):
    """Facets that documents must have: one of the values of each that has any."""

    source: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    status: tuple[Status, ...] = Field((), description="of either phase")
    reason: tuple[Reason, ...] = Field((), description="of either phase")
    state: tuple[LinkState, ...] = Field((), description="in `store`, or in any")
    store: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    text: Annotated[str, Field(max_length=_LONGEST_TEXT, description="a piece of the name")] = ""
    deleted: bool = Field(default=False, description="those that a person had deleted, and no others")

    def passes(self, label: DocumentLabel) -> bool:
        """Whether the documents of a label have the facets; what is gone from its source and every store never does."""
        where = Where(self.source, self.reason, self.status, self.state)
        is_meant = label.presence is Presence.ERASED if self.deleted else label.presence not in GONE
        return is_meant and where.fits(label, self.store)


async def document_of(services: Services, caller: Caller, document_id: str) -> DocStatus:
    """A document of the caller's organisation.

    Raises:
        Problem: there is none of this id.
    """
    doc = await services.components.state.get_status(document_id) if len(document_id) <= LONGEST_ID else None
    if doc is None or doc.org_id != caller.org_id:
        raise no_such_document(document_id[:LONGEST_ID])
    return doc


def check_version(doc: DocStatus, if_match: str) -> None:
    """Refuse to go on from a record that is not as the caller has seen it.

    Raises:
        Problem: somebody else was first; it has the version that is there now.
    """
    wanted = if_match.replace(" ", "").split(",") if if_match else []
    if wanted and "*" not in wanted and etag_of(doc) not in wanted:
        raise changed(doc)


def changed(doc: DocStatus) -> Problem:
    """Somebody else was first; `doc` is what there is now."""
    return Problem(
        412,
        "changed",
        f"Document '{doc.document_id}' is not as you have seen it.",
        "Read it again, look at what changed, and repeat your change with its new ETag.",
        {"version": etag_of(doc)},
        {"ETag": etag_of(doc)},
    )


async def ids_behind(
    services: Services, caller: Caller, where: LabelFilter, text: str, after: str, limit: int
) -> list[str]:
    """See DocumentIndex.page."""
    return await asyncio.to_thread(services.index.page, caller.org_id, where, text, after, limit)


async def counted(services: Services, caller: Caller, where: LabelFilter, text: str = "") -> dict[DocumentLabel, int]:
    """See DocumentIndex.counts."""
    return await asyncio.to_thread(services.index.counts, caller.org_id, where, text)
