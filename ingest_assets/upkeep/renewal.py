"""Begins a store anew that holds another embedder's vectors: it is emptied, and owed every document it had.

Its data goes first and the records follow. Dying in between leaves an empty store whose documents are called Stale, as
they were before; then asking again builds them, as it would have. While a store is built anew, a search finds what is
there already, and the command line says how many documents are not.
"""

import asyncio
from collections.abc import Sequence

from ingest_assets.components import Components
from resources.clock import utc_now
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.label import DocumentLabel, config_hash, differing_parts
from resources.document_state.model import Presence
from resources.document_state.store_transitions import store_emptied
from resources.store.store import StoreError, StoreUnavailableError

_CHUNK = 500


async def refusing_stores(components: Components, slugs: Sequence[str]) -> list[str]:
    """Those of some stores that hold another embedder's vectors. One that cannot be asked is told of by the run."""
    found = []
    for slug in slugs:
        store = (await components.target(slug)).store
        try:
            takes = await asyncio.to_thread(store.takes_vectors)
        except StoreError:
            continue
        if not takes:
            found.append(slug)
    return found


async def begin_anew(components: Components, slug: str) -> int:
    """Empty a store and owe it every document it had; gives how many these are. Repeated, it goes on.

    Raises:
        StoreUnavailableError: a document that belongs there is in a worker's hands; the store is as it was.
    """
    state = components.state
    busy = (await state.get_many(await state.list_open(lambda label: label.claimed))).values()
    if n_busy := sum(doc.claim is not None and slug in doc.due_in for doc in busy):
        raise StoreUnavailableError(
            slug,
            f"is to be emptied and built anew, and {n_busy:,} of its documents are being worked on. It is as it was. "
            "Let the runs end, then ask again.",
        )
    await asyncio.to_thread((await components.target(slug)).store.drop)
    n_owed = await _owe_documents(state, slug)
    await components.register_stores()  # it holds nobody's vectors now, so its record takes the configured embedder
    return n_owed


async def _owe_documents(state: DocumentStateStore, slug: str) -> int:
    """Let the record of every document that was in a store say that it is owed there."""
    ids = state.in_parts(await documents_in(state, slug))
    n_owed = 0
    for start in range(0, len(ids), _CHUNK):
        now = utc_now()
        docs = [doc for doc in (await state.get_many(ids[start : start + _CHUNK])).values() if doc.claim is None]
        stored = await state.set_many([(store_emptied(doc, slug, now), doc) for doc in docs])
        n_owed += sum(doc is not None for doc in stored)
    return n_owed


async def documents_in(state: DocumentStateStore, slug: str) -> list[str]:
    """Ids of the present documents that have a link to a store, in whatever state."""
    return await state.list_ids(lambda label: label.presence is Presence.PRESENT and _is_in(label, slug))


async def n_not_found(components: Components, slug: str) -> int:
    """How many documents a store had with another embedder than it has now, so that no search finds them."""
    wanted = config_hash((await components.target(slug)).parts)
    n_documents = 0
    for label, n in (await components.state.counts()).items():
        if label.presence is Presence.PRESENT:
            # A link without any parts is of a document that never was in it.
            configs = [config for name, _, config in label.links if name == slug and config]
            n_documents += n * any("embedder" in differing_parts(config, wanted) for config in configs)
    return n_documents


def _is_in(label: DocumentLabel, slug: str) -> bool:
    return any(name == slug for name, *_ in label.links)
