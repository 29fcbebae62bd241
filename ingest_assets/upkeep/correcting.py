"""Corrects the chunks of one document: the corrected artifact is kept first, then one write of the record publishes it.

The document is claimed for that as a run claims it, so whoever else works on it is waited for, and a process that dies
in between leaves a claim that the sweep releases: nothing of the correction shows, and it can be made again.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Collection, Sequence

import msgspec

from ingest_assets.components import Components
from ingest_assets.upkeep.edits import Edit, texts_by_chunk
from ingest_assets.upkeep.staleness import held_at_configuration
from resources.artifact_store.artifact import Artifact, artifact_hash
from resources.artifact_store.corrections import Signature, corrected, corrections_of, restored, warnings_of
from resources.clock import utc_now
from resources.document_state import correcting, transitions
from resources.document_state.model import Corrections, DocStatus, Presence, Status
from resources.document_state.workers import Heartbeat, LeaseLostError, Worker

PATIENCE = 10.0  # seconds to wait for a run that has the document
_PAUSE = 0.1

Change = Callable[[Artifact], Artifact]


class NotCorrectableError(Exception):
    """The document has no chunks that could be corrected now."""


class DocumentBusyError(Exception):
    """A worker has had the document for as long as we wait. Nothing was written."""


class Corrected(msgspec.Struct, frozen=True):
    """The document as it stands now, its artifact, and how many chunks are others than before."""

    doc: DocStatus
    artifact: Artifact
    n_changed: int


async def read_chunks(components: Components, document_id: str) -> tuple[DocStatus, Artifact]:
    """A document's record, and the artifact it names.

    Raises:
        NotCorrectableError: nothing was extracted from it, or what was is lost.
    """
    doc = await components.state.get_status(document_id)
    if doc is None or not doc.artifact:
        raise NotCorrectableError(f"Document '{document_id}' has no chunks: nothing is extracted from it here.")
    found = await asyncio.to_thread(components.artifacts.get_many, [doc.artifact])
    if doc.artifact not in found:
        raise NotCorrectableError(
            f"The chunks of document '{document_id}' are lost or damaged. `ingest run --force PATH` makes them again."
        )
    return doc, found[doc.artifact]


async def edit_chunks(
    components: Components, document_id: str, edits: Sequence[Edit], signature: Signature, patience: float = PATIENCE
) -> Corrected:
    """Give chunks the texts a person wants; all of them, or none.

    Args:
        components: state, artifacts, configuration.
        document_id: which document.
        edits: its chunks as they were shown, with the new texts; those that are as they were shown change nothing.
        signature: whose correction it is.
        patience: seconds to wait for a run that has the document.

    Raises:
        EditError: a line names a chunk that is not there, or a text that cannot be.
        ChunkChangedError: somebody else has corrected such a chunk since it was shown.
        DocumentBusyError, NotCorrectableError: see there.
    """

    def change(artifact: Artifact) -> Artifact:
        return corrected(artifact, texts_by_chunk(artifact, edits), signature)

    return await _change(components, document_id, change, signature.by, patience)


async def reset_chunks(
    components: Components, document_id: str, chunk_ids: Collection[str], by: str, patience: float = PATIENCE
) -> Corrected:
    """Take corrections back: of these chunks, or, with none named, all that there are now.

    Raises:
        UnknownChunkError: no chunk has such an id.
        ChunkChangedError: somebody else has corrected such a chunk meanwhile.
        DocumentBusyError, NotCorrectableError: see there.
    """
    if not chunk_ids:
        _, artifact = await read_chunks(components, document_id)
        chunk_ids = [chunk.chunk_id for chunk in corrections_of(artifact)]
    return await _change(components, document_id, lambda artifact: restored(artifact, chunk_ids), by, patience)


async def _change(components: Components, document_id: str, change: Change, by: str, patience: float) -> Corrected:
    """Apply a change to what is there, again and again until it is published as a change of just that."""
    deadline = time.monotonic() + patience
    while True:
        doc, artifact = await read_chunks(components, document_id)
        if doc.claim is None:
            _check_correctable(doc)
            changed = change(artifact)
            if changed == artifact:
                return Corrected(doc, artifact, 0)
            if (published := await _publish(components, doc, changed, by)) is not None:
                return Corrected(published, changed, _n_changed(artifact, changed))
        elif time.monotonic() > deadline:
            run = f" (run {doc.claim.run_id})" if doc.claim.run_id else ""
            raise DocumentBusyError(
                f"Document '{document_id}' is being worked on by worker {doc.claim.worker_id}{run}. Nothing was "
                "changed. Try again when that has ended; if it died, `ingest run --mode resume` frees what it held."
            )
        else:
            await asyncio.sleep(_PAUSE)


async def _publish(components: Components, doc: DocStatus, changed: Artifact, by: str) -> DocStatus | None:
    """Keep the artifact and let the record name it; None: the record is not as it was read, and nothing shows."""
    lease = components.settings.lease
    # A worker while the artifact is kept and not referred to yet: nobody takes it for garbage.
    worker = await Worker.register(components.backend, f"correction-{uuid.uuid4()}", utc_now(), lease)
    with Heartbeat(worker, lease / 3):
        try:
            return await _publish_as(worker, components, doc, changed, by)
        except LeaseLostError:
            return None
        finally:
            await worker.end()


async def _publish_as(
    worker: Worker, components: Components, doc: DocStatus, changed: Artifact, by: str
) -> DocStatus | None:
    state = components.state
    await worker.hold([doc.document_id])
    now = utc_now()
    claim = transitions.claimed(doc, worker.worker_id, worker.run_id, now, extract=False)
    [claimed] = await state.set_many([(claim, doc)])
    published = None
    if claimed is not None:
        try:
            [key] = await asyncio.to_thread(components.artifacts.put_many, [changed])
            await worker.ensure_alive()
            [published] = await state.set_many([(await _corrected(components, claimed, changed, key, by), claimed)])
        except BaseException:
            await state.set_many([(transitions.released(claimed, utc_now()), claimed)])
            await worker.hold(())
            raise
    with contextlib.suppress(LeaseLostError):  # it is published, or nothing of it is
        await worker.hold(())
    return published


async def _corrected(components: Components, doc: DocStatus, changed: Artifact, key: str, by: str) -> DocStatus:
    now = utc_now()
    return correcting.corrected(
        doc,
        now,
        artifact=key,
        artifact_hash=artifact_hash(changed),
        chunkset_hash=changed.chunkset_hash,
        warnings=warnings_of(changed),
        corrections=Corrections(len(corrections_of(changed)), by, now),
        is_current=held_at_configuration(doc, await components.configured()),
    )


def _check_correctable(doc: DocStatus) -> None:
    if doc.presence is not Presence.PRESENT:
        raise NotCorrectableError(f"Document '{doc.document_id}' is gone from its source ({doc.presence}).")
    if doc.extraction.status is not Status.COMPLETED:
        raise NotCorrectableError(
            f"Document '{doc.document_id}' has other content by now, which is not extracted ({doc.extraction.status}): "
            "`ingest why` says more. Its chunks can be corrected when `ingest run` has read it."
        )


def _n_changed(before: Artifact, after: Artifact) -> int:
    known = {chunk.chunk_id for chunk in (*before.chunks, *before.void_corrections)}
    kept = known & {chunk.chunk_id for chunk in (*after.chunks, *after.void_corrections)}
    return len(known) - len(kept)
