"""Routes by which a person changes a document: another text for a chunk, or all of it gone."""

import asyncio
import time
import uuid
from typing import Annotated

from fastapi import APIRouter, Header, Response
from pydantic import Field

from ingest_assets.api.asking_for_work import begun
from ingest_assets.api.choosing import changed, check_version, document_of
from ingest_assets.api.document_shapes import ChunkShape, chunk_shape, etag_of
from ingest_assets.api.job_shapes import NOTHING_TO_DO, Accepted, job_shape
from ingest_assets.api.problems import Problem
from ingest_assets.api.services import ADMINISTERS, WRITES, Asking, Given, Services
from ingest_assets.api.shapes import Shape
from ingest_assets.requests.members import members_of
from ingest_assets.upkeep.correcting import DocumentBusyError, NotCorrectableError, edit_chunks, read_chunks
from ingest_assets.upkeep.edits import LONGEST_NOTE, LONGEST_TEXT, Edit, EditError, one_line
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.corrections import ChunkChangedError, Signature
from resources.clock import utc_now
from resources.document_state import removals
from resources.document_state.ingest_jobs import Errand, IngestJob
from resources.document_state.model import GONE, DocStatus, Presence
from resources.document_state.process_identity import this_process
from resources.document_state.take_up import Mode

router = APIRouter(prefix="/api/documents", tags=["documents"])
IfMatch = Annotated[str, Header(description="the ETag the record must have")]
_PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 0.05


class CorrectedText(Shape):
    """The text that a chunk shall have, and why."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)]
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


@router.put("/{document_id}/chunks/{chunk_id}", dependencies=[WRITES])
async def correct_chunk(
    document_id: str,
    chunk_id: str,
    wanted: CorrectedText,
    services: Given,
    caller: Asking,
    response: Response,
    if_match: IfMatch = "",
) -> ChunkShape:
    """Give a chunk another text. Stores that hold it become Stale. If somebody else was first: 412, with his text."""
    doc = await document_of(services, caller, document_id)
    original_id = _original_of(await _artifact_of(services, doc), chunk_id)
    edits = [Edit(1, chunk_id, wanted.text)]
    try:
        check_version(doc, if_match)
        signature = Signature(caller.user, utc_now(), one_line(wanted.note, "note", LONGEST_NOTE))
        done = await edit_chunks(services.components, document_id, edits, signature, _PATIENCE_SECONDS)
    except (ChunkChangedError, Problem) as error:
        raise await _somebody_was_first(services, document_id, original_id) from error
    except EditError as error:
        raise Problem(422, "not-a-text", str(error).removeprefix("Line 1: "), "Send another text.") from error
    except DocumentBusyError as error:
        raise _busy(document_id) from error
    except NotCorrectableError as error:
        raise _not_correctable(error) from error
    response.headers["ETag"] = etag_of(done.doc)
    return _shown(done.artifact, original_id)


@router.delete("/{document_id}", status_code=202, dependencies=[ADMINISTERS], responses=NOTHING_TO_DO)
async def delete_document(
    document_id: str, services: Given, caller: Asking, response: Response, if_match: IfMatch = ""
) -> Accepted:
    """Have a document, and all that lies in it, removed from every store, whatever its source has."""
    doc = await document_of(services, caller, document_id)
    check_version(doc, if_match)
    members = [found for found in await members_of(services.components, [doc]) if found.presence not in GONE]
    is_away = doc.presence is Presence.ERASED and not doc.links
    if is_away and not members:
        response.status_code = 200
        return Accepted(job=None)
    for busy in [doc, *members]:
        if busy.claim is not None:
            raise _busy(busy.document_id)
    now = utc_now()
    if doc.presence is not Presence.DELETING and not is_away:
        [written] = await services.components.state.set_many([(removals.deletion_requested(doc, now), doc)])
        if written is None:
            raise changed(await document_of(services, caller, document_id))
    asked = [found for found in members if found.presence is not Presence.DELETING]
    await services.components.state.set_many([(removals.deletion_requested(found, now), found) for found in asked])
    # From here on it is due: should this job come to nothing, the next run does it.
    new = IngestJob(uuid.uuid4().hex, caller.org_id, caller.user, Mode.INCREMENTAL, now, this_process())
    job = await begun(services, new, [document_id, *(found.document_id for found in members)])
    response.headers["Location"] = f"/api/ingestion-jobs/{job.job_id}"
    return Accepted(job=job_shape(job))


@router.post("/{document_id}/restore", status_code=202, dependencies=[ADMINISTERS])
async def restore_document(
    document_id: str, services: Given, caller: Asking, response: Response, if_match: IfMatch = ""
) -> Accepted:
    """Bring back a document that was deleted, and all that lies in it: it is read from its source again."""
    doc = await document_of(services, caller, document_id)
    check_version(doc, if_match)
    if doc.presence is not Presence.ERASED:
        raise Problem(
            409,
            "not-deleted",
            f"Document '{document_id}' was not deleted, or is still being deleted.",
            "Nothing was changed. GET /api/documents?deleted=true lists those that are.",
        )
    members = [found for found in await members_of(services.components, [doc]) if found.presence is Presence.ERASED]
    new = IngestJob(
        uuid.uuid4().hex, caller.org_id, caller.user, Mode.INCREMENTAL, utc_now(), this_process(),
        errand=Errand.RESTORING,
    )  # fmt: skip
    job = await begun(services, new, [document_id, *(found.document_id for found in members)])
    response.headers["Location"] = f"/api/ingestion-jobs/{job.job_id}"
    return Accepted(job=job_shape(job))


async def _artifact_of(services: Services, doc: DocStatus) -> Artifact:
    try:
        _, artifact = await read_chunks(services.components, doc.document_id)
    except NotCorrectableError as error:
        raise _not_correctable(error) from error
    return artifact


def _original_of(artifact: Artifact, chunk_id: str) -> str:
    """The id that extraction gave a chunk, by which it is found whatever its text has become."""
    for chunk in artifact.chunks:
        original_id = chunk.correction.original_id if chunk.correction else chunk.chunk_id
        if chunk_id in (chunk.chunk_id, original_id):
            return original_id
    raise Problem(
        404,
        "no-such-chunk",
        f"The document has no chunk '{chunk_id[:64]}', or none any more.",
        "Read its chunks again.",
    )


async def _somebody_was_first(services: Services, document_id: str, original_id: str) -> Problem:
    """The refusal, with the chunk as it is now; if whoever was first is just writing it, as he leaves it."""
    until = time.monotonic() + _PATIENCE_SECONDS
    doc, artifact = await read_chunks(services.components, document_id)
    while doc.claim is not None and time.monotonic() < until:
        await asyncio.sleep(_PAUSE_SECONDS)
        doc, artifact = await read_chunks(services.components, document_id)
    problem = changed(doc)
    problem.fields["chunk"] = _shown(artifact, original_id).model_dump(mode="json", by_alias=True)
    return problem


def _shown(artifact: Artifact, original_id: str) -> ChunkShape:
    """A chunk by the id that extraction gave it."""
    chunk = next(c for c in artifact.chunks if original_id in (c.chunk_id, c.correction and c.correction.original_id))
    return chunk_shape(chunk, [entry for entry in artifact.entries if entry.chunk_id == chunk.chunk_id])


def _busy(document_id: str) -> Problem:
    return Problem(
        409,
        "busy",
        f"Document '{document_id}' is being worked on. Nothing was changed.",
        "Try again when that has ended.",
        headers={"Retry-After": "5"},
    )


def _not_correctable(error: NotCorrectableError) -> Problem:
    return Problem(409, "not-correctable", str(error), "Correct it when it is extracted.")
