"""Having documents ingested again: first a person is shown what it takes, then the job begins."""

import uuid
from urllib.parse import parse_qs

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from ingest_assets.api.asking_for_work import accepted
from ingest_assets.api.choosing import Filter
from ingest_assets.api.estimating import what_it_takes
from ingest_assets.api.job_shapes import WantedJob
from ingest_assets.api.problems import Problem
from ingest_assets.api.services import WRITES, Asking, Given
from ingest_assets.page.forms import Form, Sent
from ingest_assets.page.rendering import page

router = APIRouter(include_in_schema=False, dependencies=[WRITES])


@router.post("/reingest")
async def estimated(services: Given, caller: Asking, sent: Sent) -> Response:
    """What the job would take that a form of the library asks for."""
    wanted = _wanted(sent)
    values = {
        "wanted": wanted,
        "filter": sent.one("filter"),
        "which": sent.one("which"),
        "back": sent.one("back"),
        "takes": await what_it_takes(services, caller, wanted),
        "model": services.settings.extractor,
        "stores": [services.store_names.get(slug, slug) for slug in wanted.stores],
        "repeat_key": uuid.uuid4().hex,
    }
    return page("reingest.html", services, caller, values)


@router.post("/jobs")
async def begun(services: Given, caller: Asking, sent: Sent) -> Response:
    """Begin the job. A form that is sent twice begins one; then to the job, or back to the one document it is about."""
    wanted = _wanted(sent)
    # Of one page, by its back button: the same once more is a repetition, another store is another job.
    repeat_key = f"{sent.one('key')} {wanted.model_dump_json()}" if sent.one("key") else ""
    job, chosen = await accepted(services, caller, wanted, repeat_key)
    if job is None:
        are = "is" if chosen.n_busy == 1 else "are"
        held = f"{chosen.n_busy} {are} being worked on already. " if chosen.n_busy else ""
        raise Problem(409, "nothing-to-do", "There is nothing to do.", f"{held}Go back and look how they stand now.")
    if sent.one("back") == "document" and wanted.document_ids:
        return RedirectResponse(f"/documents/{wanted.document_ids[0]}?job={job.job_id}", 303)
    return RedirectResponse(f"/jobs/{job.job_id}", 303)


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
    return {name: values[-1] if name in ("text", "deleted") else values for name, values in given.items()}
