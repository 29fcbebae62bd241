"""Correcting a chunk on its document's page.

A form names the chunk by its id, and an id is made of the chunk's text: whoever has seen another text has another id.
So what he sends is taken only if nobody has changed that chunk meanwhile, whatever else became of the document.
"""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Response
from fastapi.responses import RedirectResponse

from ingest_assets.api.choosing import document_of
from ingest_assets.api.problems import Problem
from ingest_assets.api.services import WRITES, Asking, Given, Services
from ingest_assets.api.tokens import Caller
from ingest_assets.page.document import DocumentId, address_of_chunk, document_values, first_beside
from ingest_assets.page.forms import Form, Sent
from ingest_assets.page.rendering import page
from ingest_assets.upkeep.correcting import (
    DocumentBusyError,
    NotCorrectableError,
    edit_chunks,
    read_chunks,
    reset_chunks,
)
from ingest_assets.upkeep.edits import LONGEST_NOTE, Edit, EditError, one_line
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.corrections import ChunkChangedError, Signature, UnknownChunkError
from resources.clock import utc_now

router = APIRouter(prefix="/documents", include_in_schema=False, dependencies=[WRITES])
ChunkId = Annotated[str, Path(max_length=64)]


@router.post("/{document_id}/chunks/{chunk_id}")
async def correct(document_id: DocumentId, chunk_id: ChunkId, services: Given, caller: Asking, sent: Sent) -> Response:
    """Give a chunk another text. If somebody else was first, both texts are shown and nothing is written."""
    await document_of(services, caller, document_id)
    try:
        signature = Signature(caller.user, utc_now(), one_line(sent.one("note"), "note", LONGEST_NOTE))
        edit = Edit(1, chunk_id, sent.one("text"))
        done = await edit_chunks(services.components, document_id, [edit], signature)
    except (ChunkChangedError, EditError) as error:
        return await _shown_again(services, caller, document_id, chunk_id, sent, error)
    except (NotCorrectableError, DocumentBusyError) as error:
        raise _refused(error) from error
    return RedirectResponse(address_of_chunk(document_id, _number_of(done.artifact, sent.one("original")) or 1), 303)


@router.post("/{document_id}/chunks/{chunk_id}/reset")
async def take_back(
    document_id: DocumentId, chunk_id: ChunkId, services: Given, caller: Asking, sent: Sent
) -> Response:
    """Let a chunk say again what extraction has made of it."""
    await document_of(services, caller, document_id)
    try:
        done = await reset_chunks(services.components, document_id, [chunk_id], caller.user)
    except (ChunkChangedError, UnknownChunkError) as error:
        raise Problem(412, "changed", str(error), "Go back, load the page again, and look at what changed.") from error
    except (NotCorrectableError, DocumentBusyError) as error:
        raise _refused(error) from error
    return RedirectResponse(address_of_chunk(document_id, _number_of(done.artifact, sent.one("original")) or 1), 303)


class Conflict(msgspec.Struct, frozen=True):
    """What somebody sent that was not taken: why, and for the chunk of which number, 0 if it is there no more."""

    text: str
    note: str
    why: str
    number: int
    is_changed: bool


async def _shown_again(
    services: Services, caller: Caller, document_id: str, chunk_id: str, sent: Form, error: Exception
) -> Response:
    """The page as it is now, with what was sent still in the form, which names the chunk as it is now."""
    try:
        doc, artifact = await read_chunks(services.components, document_id)
    except NotCorrectableError as gone:
        raise _refused(gone) from gone
    number = _number_of(artifact, sent.one("original"))
    is_changed = not number or artifact.chunks[number - 1].chunk_id != chunk_id
    why = str(error).removeprefix("Line 1: ")
    conflict = Conflict(sent.one("text"), sent.one("note"), why, number, is_changed)
    values = await document_values(services, doc, first_beside(max(1, number)))
    return page("document.html", services, caller, {**values, "conflict": conflict}, 412 if is_changed else 422)


def _number_of(artifact: Artifact, original_id: str) -> int:
    """The number of the chunk of which extraction had made the id, whoever has corrected it since; 0: there is none."""
    for number, chunk in enumerate(artifact.chunks, 1):
        if original_id == (chunk.correction.original_id if chunk.correction else chunk.chunk_id):
            return number
    return 0


def _refused(error: Exception) -> Problem:
    return Problem(409, "not-now", str(error), "Nothing was changed. Go back and try again later.")
