"""One document: how it stands and why, what happened to it, and its chunks beside its text."""

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse

from ingest_assets.api.changes import delete_document, restore_document
from ingest_assets.api.choosing import document_of
from ingest_assets.api.document_shapes import document_shape, history_shape
from ingest_assets.api.services import ADMINISTERS, READS, Asking, Given, Services
from ingest_assets.page.forms import Sent
from ingest_assets.page.reading import CHUNKS_ON_A_PAGE, passages
from ingest_assets.page.rendering import Live, live, live_answer, page, query_of
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.forecast import estimate_of
from ingest_assets.upkeep.correcting import NotCorrectableError, read_chunks
from resources.artifact_store.artifact import Artifact
from resources.document_state.model import DocStatus, Presence, Status

router = APIRouter(prefix="/documents", include_in_schema=False, dependencies=[READS])
DocumentId = Annotated[str, Path(max_length=128)]
Number = Annotated[int, Query(alias="from", ge=1, le=10_000_000)]


@router.get("/{document_id}")
async def document(
    document_id: DocumentId, services: Given, caller: Asking, first: Number = 1, job: Annotated[str, Query()] = ""
) -> Response:
    """The page of a document; `job`: the job that was begun for it just now."""
    doc = await document_of(services, caller, document_id)
    return page("document.html", services, caller, await document_values(services, doc, first, job))


@router.post("/{document_id}/delete", dependencies=[ADMINISTERS])
async def delete(document_id: DocumentId, services: Given, caller: Asking, sent: Sent) -> RedirectResponse:
    """Have it removed, if it is as it was shown."""
    begun = await delete_document(document_id, services, caller, Response(), sent.one("version"))
    return RedirectResponse(f"/documents/{document_id}?job={begun.job.job_id if begun.job else ''}", 303)


@router.post("/{document_id}/restore", dependencies=[ADMINISTERS])
async def restore(document_id: DocumentId, services: Given, caller: Asking, sent: Sent) -> RedirectResponse:
    """Bring it back, if it is as it was shown."""
    begun = await restore_document(document_id, services, caller, Response(), sent.one("version"))
    return RedirectResponse(f"/documents/{document_id}?job={begun.job.job_id if begun.job else ''}", 303)


@router.get("/{document_id}/standing")
async def standing(
    document_id: DocumentId,
    services: Given,
    caller: Asking,
    below: Annotated[str, Query(max_length=64)] = "",
    seen: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """How it stands now, where the page shows it; `below`: the hash of the chunks that the page shows below it."""
    doc = await document_of(services, caller, document_id)
    return live_answer(await _standing(services, doc, below), seen)


@router.get("/{document_id}/chunks/{chunk_id}")
async def chunk(document_id: DocumentId, chunk_id: str, services: Given, caller: Asking) -> RedirectResponse:
    """To the place of a chunk, wherever in its document it stands; to the document if it has no such chunk any more."""
    doc = await document_of(services, caller, document_id)
    artifact = await _artifact(services, doc)
    chunks = artifact.chunks if artifact is not None else ()
    number = next((number for number, chunk in enumerate(chunks, 1) if chunk.chunk_id == chunk_id), 0)
    return RedirectResponse(address_of_chunk(document_id, number) if number else f"/documents/{document_id}", 303)


def address_of_chunk(document_id: str, number: int) -> str:
    """Where the page shows the chunk of a number, which counts from 1."""
    return f"/documents/{document_id}?from={first_beside(number)}#c-{number}"


def first_beside(number: int) -> int:
    """The number of the first chunk on the page that shows the chunk of a number."""
    return (number - 1) // CHUNKS_ON_A_PAGE * CHUNKS_ON_A_PAGE + 1


async def document_values(services: Services, doc: DocStatus, first: int, job_id: str = "") -> dict[str, Any]:
    """What the page of a document shows, with its chunks from the `first` on."""
    artifact = await _artifact(services, doc)
    chunks = artifact.chunks if artifact is not None else ()
    configured = await services.components.configured()
    estimate = estimate_of([doc], Asked(Kind.CHOSEN, (services.settings.default_store,)), configured)
    return {
        "doc": document_shape(doc, configured, services.store_names),
        "estimate": estimate,
        "costs": bool(estimate.n_to_extract) and services.components.extractor.is_paid,
        "repeat_key": uuid.uuid4().hex,
        "made_with": doc.extraction.parts,
        "parser": doc.parser,
        "corrections": doc.corrections,
        "spent_micro_usd": doc.spent_micro_usd,
        "standing": (await _standing(services, doc, doc.artifact_hash)).html,
        "job_id": job_id,
        "is_lost": bool(doc.artifact) and artifact is None,
        "is_present": doc.presence is Presence.PRESENT,
        "is_deleted": doc.presence is Presence.ERASED,
        "is_correctable": doc.presence is Presence.PRESENT and doc.extraction.status is Status.COMPLETED,
        "passages": passages(artifact, first, CHUNKS_ON_A_PAGE) if artifact is not None else [],
        "void": artifact.void_corrections if artifact is not None else (),
        "first": first,
        "previous": max(1, first - CHUNKS_ON_A_PAGE) if first > 1 else None,
        "next": first + CHUNKS_ON_A_PAGE if first + CHUNKS_ON_A_PAGE <= len(chunks) else None,
        "conflict": None,
    }


async def _standing(services: Services, doc: DocStatus, below: str) -> Live:
    shape = document_shape(doc, await services.components.configured(), services.store_names)
    states = ", ".join(f"{store.store_name} {store.verdict or store.state}" for store in shape.stores)
    values = {
        "doc": shape,
        "extraction_run": doc.extraction.run_id,
        "history": history_shape(doc).changes,
        "has_other_chunks": doc.artifact_hash != below,
        "store_names": services.store_names,
        "dagster_url": services.settings.api.dagster_url,
        "said": f"{shape.lifecycle}: {states}",
    }
    address = f"/documents/{doc.document_id}/standing?{query_of({'below': below})}"
    return live("document_standing.html", "standing", address, values)


async def _artifact(services: Services, doc: DocStatus) -> Artifact | None:
    """What was extracted of it; None: nothing, or what was is lost."""
    if not doc.artifact:
        return None
    try:
        _, artifact = await read_chunks(services.components, doc.document_id)
    except NotCorrectableError:
        return None
    return artifact
