"""Drops a store's data as a whole, so that it can begin anew: with another embedder, or after it was damaged.

The records are told first: a store that still holds what no record speaks of does no harm, the opposite is a lie.
"""

from collections.abc import Callable

import msgspec

from resources.clock import utc_now
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.store_transitions import store_dropped

_CHUNK = 500


class Dropped(msgspec.Struct):
    """What dropping did. `n_busy`: documents in a worker's hands; with any, the data was left: try again."""

    n_documents: int = 0
    n_busy: int = 0


async def linked_documents(state: DocumentStateStore, slug: str) -> list[str]:
    """Ids of the documents whose record speaks of a store, or is about to. Reads every record."""
    return [
        doc.document_id
        async for doc in state.iter_statuses()
        if slug in doc.links or (doc.claim is not None and slug in doc.due_in)
    ]


async def drop_store(
    state: DocumentStateStore, slug: str, drop: Callable[[], None], advance: Callable[[int], None]
) -> Dropped:
    """Let every record forget a store, then remove its data by `drop`. Repeated, it goes on where it stopped."""
    result = Dropped()
    await _forget(state, slug, result, advance)
    if not result.n_busy:
        drop()
        # Whoever published a link between the two wrote what is gone now.
        await _forget(state, slug, result, advance)
    return result


async def _forget(state: DocumentStateStore, slug: str, result: Dropped, advance: Callable[[int], None]) -> None:
    ids = state.in_parts(await linked_documents(state, slug))
    for start in range(0, len(ids), _CHUNK):
        docs = list((await state.get_many(ids[start : start + _CHUNK])).values())
        now = utc_now()
        free = [doc for doc in docs if doc.claim is None and slug in doc.links]
        stored = await state.set_many([(store_dropped(doc, slug, now), doc) for doc in free])
        n_done = sum(doc is not None for doc in stored)
        result.n_documents += n_done
        result.n_busy += len(free) - n_done + sum(doc.claim is not None for doc in docs)
        advance(n_done)
