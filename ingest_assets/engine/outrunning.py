"""What a store fences although nobody else has it: a store may be ahead of a state that was lost or restored.

Whether somebody else has a document only its record knows. So a fenced document's record is written on the condition
that it is still as we claimed it, with a token larger than the store's: if that is refused, it is another's; if not,
the store was ahead, and the document is done at once under the new token.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from ingest_assets.engine.build_stage import Built
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import DocStatus
from resources.document_state.workers import Worker

# Writes documents into a store or removes them, and gives what became of each, by document id.
Touch = Callable[[Sequence[DocStatus]], dict[str, Built]]


class Touched(msgspec.Struct, frozen=True):
    """What became of documents in one store.

    Attributes:
        outcomes: by document id; `fenced` where it was not done.
        renewed: records that have another token now, still ours.
        taken: fenced, and another's by now: nothing may be published of them.
    """

    outcomes: dict[str, Built]
    renewed: dict[str, DocStatus]
    taken: set[str]


async def touch_store(
    state: DocumentStateStore, worker: Worker, docs: Sequence[DocStatus], touch: Touch, touch_again: Touch
) -> Touched:
    """Write documents into a store, or remove them, and outrun the store's tokens where it is ahead of the state.

    A document that is fenced again after that stays ours and undone, with a token larger than the one that stood in
    the way: the next claim passes.

    Args:
        state: where the records are.
        worker: who has claimed the documents.
        docs: their records.
        touch: what to do.
        touch_again: the same for documents the store has fenced, and so holds or remembers.
    """
    # In a thread: the store's work goes on beside the reporting of the group before.
    outcomes = await asyncio.to_thread(touch, docs)
    renewed, taken = await _outrun(state, docs, outcomes)
    if renewed:
        await worker.ensure_alive()
        again = await asyncio.to_thread(touch_again, list(renewed.values()))
        outcomes |= again
        twice, taken_since = await _outrun(state, list(renewed.values()), again)
        taken |= taken_since
        renewed = {key: doc for key, doc in (renewed | twice).items() if key not in taken}
    return Touched(outcomes, renewed, taken)


async def _outrun(
    state: DocumentStateStore, docs: Sequence[DocStatus], outcomes: dict[str, Built]
) -> tuple[dict[str, DocStatus], set[str]]:
    """Give fenced documents that are still ours a token larger than the store's; the others are taken."""
    fenced = [doc for doc in docs if doc.document_id in outcomes and outcomes[doc.document_id].fenced]
    if not fenced:
        return {}, set()
    now = utc_now()
    stored = await state.set_many(
        [(transitions.outran(doc, outcomes[doc.document_id].held_token, now), doc) for doc in fenced]
    )
    ours = {doc.document_id: doc for doc in stored if doc is not None}
    return ours, {doc.document_id for doc in fenced} - ours.keys()
