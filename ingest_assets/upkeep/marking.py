"""Marks what the configuration has made stale, and what it has made to count no more, in one pass over documents.

A label carries hashes of the configuration a document was made with, so only those documents are read whose labels say
that they may differ, and a pass that was interrupted goes on where it stopped. Marking spends nothing and starts
nothing: rebuilding is for whoever asks.
"""

from collections.abc import Callable, Sequence

import msgspec

from ingest_assets.upkeep.staleness import Configured, held_at_configuration, is_mismarked
from resources.clock import utc_now
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.label import label_of, read_label
from resources.document_state.model import DocStatus, LinkState
from resources.document_state.store_transitions import stores_unconfigured
from resources.document_state.transitions import configuration_compared

_CHUNK = 500


class Marked(msgspec.Struct):
    """What a pass did.

    Attributes:
        n_stale: documents that were marked stale in some store.
        n_current: documents that are so no longer, since the configuration is what it was.
        n_busy: documents in a worker's hands, or changed meanwhile: the next pass looks at them.
        stores: how many documents were marked stale in each store.
        unconfigured: how many documents are due no more in each store that is configured no more.
    """

    n_stale: int = 0
    n_current: int = 0
    n_busy: int = 0
    stores: dict[str, int] = msgspec.field(default_factory=dict)
    unconfigured: dict[str, int] = msgspec.field(default_factory=dict)


async def mark(
    state: DocumentStateStore, configured: Configured, advance: Callable[[int], None] = lambda _: None
) -> Marked:
    """Bring the marks of all documents up to the configuration, as one pass; told how many it has looked at."""
    result = Marked()
    ids = state.in_parts(await state.list_ids(lambda label: is_mismarked(label, configured)))
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        await _mark_chunk(state, list((await state.get_many(chunk)).values()), configured, result)
        advance(len(chunk))
    return result


async def mark_documents(state: DocumentStateStore, document_ids: Sequence[str], configured: Configured) -> None:
    """Bring the marks of these documents up to the configuration."""
    docs = (await state.get_many(document_ids)).values()
    mismarked = [doc for doc in docs if is_mismarked(read_label(label_of(doc)), configured)]
    await _mark_chunk(state, mismarked, configured, Marked())


async def _mark_chunk(state: DocumentStateStore, docs: list[DocStatus], configured: Configured, result: Marked) -> None:
    now = utc_now()
    changes = []
    for doc in docs:
        if doc.claim is not None:
            result.n_busy += 1
            continue
        compared = configuration_compared(doc, held_at_configuration(doc, configured), now)
        marked = stores_unconfigured(compared, configured.stores, now)
        # The same record: its label was written by an earlier version, and is renewed by writing it.
        if marked is not doc or not is_mismarked(read_label(label_of(doc)), configured):
            changes.append((marked, doc))
    for (marked, doc), stored in zip(changes, await state.set_many(changes), strict=True):
        if stored is None:
            result.n_busy += 1
        elif marked is not doc:
            _count(doc, marked, result)


def _count(before: DocStatus, after: DocStatus, result: Marked) -> None:
    for slug in set(before.due_in) - set(after.due_in):
        result.unconfigured[slug] = result.unconfigured.get(slug, 0) + 1
    newly = [slug for slug in after.due_in if slug in after.links and _has_changed(slug, before, after)]
    stale = [slug for slug in newly if after.links[slug].state is LinkState.STALE]
    result.n_stale += bool(stale)
    result.n_current += len(stale) < len(newly)
    for slug in stale:
        result.stores[slug] = result.stores.get(slug, 0) + 1


def _has_changed(slug: str, before: DocStatus, after: DocStatus) -> bool:
    return after.links[slug].state is not before.links[slug].state
