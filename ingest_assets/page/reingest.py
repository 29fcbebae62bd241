"""Having documents ingested again: first a person is shown what it takes, then the job begins."""

import asyncio
import uuid
from collections.abc import Sequence
from urllib.parse import parse_qs

import msgspec
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from ingest_assets.api.asking_for_work import accepted, chosen_for
from ingest_assets.api.choosing import Filter
from ingest_assets.api.job_shapes import WantedJob
from ingest_assets.api.problems import Problem
from ingest_assets.api.services import WRITES, Asking, Given, Services
from ingest_assets.page.forms import Form, Sent
from ingest_assets.page.rendering import page
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.forecast import estimate_of
from ingest_assets.upkeep.staleness import Configured, standings
from resources.document_state.model import DocStatus

router = APIRouter(include_in_schema=False, dependencies=[WRITES])
_NAMED = 20
_AT_ONCE = 50
_WITHOUT_MODEL = ("local", "none")


@router.post("/reingest")
async def estimated(services: Given, caller: Asking, sent: Sent) -> Response:
    """What the job would take that a form of the library asks for."""
    wanted = _wanted(sent)
    chosen = await chosen_for(services, caller, wanted)
    values = {
        "wanted": wanted,
        "filter": sent.one("filter"),
        "which": sent.one("which"),
        "takes": await _takes(services, wanted, chosen.document_ids),
        "n_busy": chosen.n_busy,
        "model": "" if services.settings.extractor in _WITHOUT_MODEL else services.settings.extractor,
        "stores": [services.store_names.get(slug, slug) for slug in wanted.stores],
        "repeat_key": uuid.uuid4().hex,
    }
    return page("reingest.html", services, caller, values)


@router.post("/jobs")
async def begun(services: Given, caller: Asking, sent: Sent) -> Response:
    """Begin the job. A form that is sent twice begins one; then to the job, or back to the one document it is about."""
    wanted = _wanted(sent)
    job, chosen = await accepted(services, caller, wanted, sent.one("key"))
    if job is None:
        held = f"{chosen.n_busy} are being worked on already. " if chosen.n_busy else ""
        raise Problem(409, "nothing-to-do", "There is nothing to do.", f"{held}Go back and look how they stand now.")
    if sent.one("back") == "document" and wanted.document_ids:
        return RedirectResponse(f"/documents/{wanted.document_ids[0]}?job={job.job_id}", 303)
    return RedirectResponse(f"/jobs/{job.job_id}", 303)


class _Takes(msgspec.Struct):
    """What a job would take: documents at which there is something to do, the others, and the first ones' names."""

    n_due: int = 0
    n_current: int = 0
    n_to_extract: int = 0
    n_chunks: int = 0
    names: list[str] = []


async def _takes(services: Services, wanted: WantedJob, document_ids: Sequence[str]) -> _Takes:
    """Looks at a part of the documents at a time, so that others are answered in between."""
    configured = await services.components.configured()
    asked = Asked(Kind(wanted.mode), wanted.stores)
    takes = _Takes()
    for start in range(0, len(document_ids), _AT_ONCE):
        docs = await services.components.state.get_many(document_ids[start : start + _AT_ONCE])
        due = [doc for doc in docs.values() if not _is_current(doc, configured, wanted.stores)]
        estimate = estimate_of(due, asked, configured)
        takes.n_due += len(due)
        takes.n_current += len(docs) - len(due)
        takes.n_to_extract += estimate.n_to_extract
        takes.n_chunks += estimate.n_chunks
        takes.names += [doc.title or doc.filename for doc in due[: _NAMED - len(takes.names)]]
        await asyncio.sleep(0)
    return takes


def _is_current(doc: DocStatus, configured: Configured, stores: Sequence[str]) -> bool:
    """Whether a job would find nothing to do at a document."""
    return all(standing.is_current for standing in standings(doc, configured, stores))


def _wanted(sent: Form) -> WantedJob:
    """The job that a form asks for.

    Raises:
        Problem: it leaves open which documents or stores, or says what cannot be.
    """
    stores, ids = sent.all("store"), sent.all("id")
    is_of_all = sent.one("which") == "all"
    if not stores or not (ids or is_of_all):
        what = "documents are" if stores else "store is"
        raise Problem(422, "nothing-chosen", f"No {what} chosen.", "Go back, tick what you mean, and send it again.")
    try:
        if is_of_all:
            return WantedJob(filter=Filter.model_validate(_facets(sent.one("filter"))), stores=stores)
        return WantedJob(document_ids=ids, stores=stores)
    except ValidationError as error:
        raise Problem(422, "invalid", "The form says what cannot be.", "Go back and choose again.") from error


def _facets(query: str) -> dict[str, object]:
    given = parse_qs(query)
    return {name: values[-1] if name == "text" else values for name, values in given.items()}
