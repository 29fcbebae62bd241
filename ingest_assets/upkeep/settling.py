"""Compares a store with the documents' records where these may be wrong about it as a whole, and owes what differs.

That is so of a store that was out of the configuration while documents changed or were deleted, and of one that is of
another kind or has other options than it had, so that it may be another index. Its links say nothing of that: they stay
in the records, whatever happens meanwhile. So nothing is looked at as long as the configuration stays as it is.

What it holds of a document that is gone is removed by the next run, and what is old there is replaced. What it lacks is
built when somebody asks, as in a store that was added: an index that was exchanged is not filled by itself.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from ingest_assets.components import Components
from ingest_assets.targets import declared_stores
from resources.clock import utc_now
from resources.counting import counted
from resources.document_state.document_state_store import Change, DocumentStateStore
from resources.document_state.links import owes_content
from resources.document_state.model import LISTED
from resources.document_state.store_transitions import store_holds, store_kept, store_lacks
from resources.store.store import Store, StoreError

_CHUNK = 500
_BUSY_FOR = timedelta(minutes=1)
_UNREADABLE_FOR = timedelta(minutes=10)


class Settled(msgspec.Struct):
    """What a comparison did.

    Attributes:
        n_owed: documents of which the store holds something older, and that are to be replaced there.
        n_leaving: documents that are gone, and are to leave it.
        n_lacking: documents that it does not hold, though it was said to.
        n_busy: documents in a worker's hands, or changed meanwhile.
    """

    n_owed: int = 0
    n_leaving: int = 0
    n_lacking: int = 0
    n_busy: int = 0

    def sentences(self, slug: str) -> list[str]:
        """What a person wants to know of it."""
        said = []
        if self.n_owed:
            said.append(f"To be replaced in store '{slug}', for it may hold something older: {counted(self.n_owed)}.")
        if self.n_leaving:
            said.append(f"To be removed from store '{slug}', for they are gone: {counted(self.n_leaving)}.")
        if self.n_lacking:
            said.append(
                f"Not in store '{slug}', though they were built into it: {counted(self.n_lacking)}. It is another one "
                f"now, or was lost. `ingest run --store {slug} --missing` builds them there, and extracts nothing."
            )
        return said


async def doubtful_stores(components: Components) -> dict[str, datetime]:
    """The configured stores that are to be compared with the documents' records, and from when on; by slug."""
    recorded, now = await components.store_registry.all(), utc_now()
    followed = {
        store.slug: recorded[store.slug].following(store, now)
        for store in declared_stores(components.settings)
        if store.slug in recorded
    }
    return {slug: record.look_at for slug, record in followed.items() if record.look_at is not None}


async def doubts(components: Components, only: str = "") -> list[str]:
    """What is to be said of them, or of one alone, where nothing is changed."""
    return [
        f"Store '{slug}' may hold something else than is said here: it was not in ingest.toml for a time, or has "
        "another kind or other options now. The next `ingest run` compares it, and says what differs."
        for slug in await doubtful_stores(components)
        if only in ("", slug)
    ]


async def settle_stores(components: Components, tell: Callable[[str], None]) -> None:
    """Compare each store with the records that is to be; whoever is about to do documents does this first.

    Dying in between leaves it to the next one. A store that cannot be read is told of, and left to the next one too.
    """
    targets = await components.targets()
    for slug, record in (await components.store_registry.all()).items():
        if slug not in targets or record.look_at is None:
            continue
        try:
            settled = await settle(components.state, targets[slug].store)
        except StoreError as error:
            tell(f"{error} What it holds is to be compared with the records, and is once it can be read.")
            await components.store_registry.looked(record, utc_now() + _UNREADABLE_FOR)
            continue
        for sentence in settled.sentences(slug):
            tell(sentence)
        await components.store_registry.looked(record, utc_now() + _BUSY_FOR if settled.n_busy else None)


async def settle(state: DocumentStateStore, store: Store) -> Settled:
    """Bring the records up to what one store holds. Reads every record, and the store's documents twice.

    Raises:
        StoreError: the store cannot be read.
    """
    result = Settled()
    ids = state.in_parts([doc.document_id async for doc in state.iter_statuses() if store.slug in doc.links])
    for start in range(0, len(ids), _CHUNK):
        docs = (await state.get_many(ids[start : start + _CHUNK])).values()
        # After the records: whoever publishes a link has written the store before.
        held = await asyncio.to_thread(store.remaining, [doc.document_id for doc in docs])
        linked, now = [doc for doc in docs if store.slug in doc.links], utc_now()
        changed = [(store_kept if doc.document_id in held else store_lacks)(doc, store.slug, now) for doc in linked]
        await _write(state, store.slug, list(zip(changed, linked, strict=True)), result)
    async for chunksets in _held_in(store):
        docs, now = (await state.get_many(chunksets)).values(), utc_now()
        changes = [(store_holds(doc, store.slug, chunksets[doc.document_id], now), doc) for doc in docs]
        await _write(state, store.slug, changes, result)
    return result


async def _held_in(store: Store) -> AsyncIterator[dict[str, str]]:
    """The chunk sets of the documents a store holds, by id, a page at a time."""
    after = ""
    while page := await asyncio.to_thread(store.held_documents, after, _CHUNK):
        yield {held.document_id: held.chunkset_hash for held in page}
        after = page[-1].document_id


async def _write(state: DocumentStateStore, slug: str, compared: Sequence[Change], result: Settled) -> None:
    """Write what differs of documents that are free, and count it."""
    changes = [(new, old) for new, old in compared if new is not old]
    free = [(new, old) for new, old in changes if old is not None and old.claim is None]
    result.n_busy += len(changes) - len(free)
    for doc in await state.set_many(free):
        if doc is None:
            result.n_busy += 1
            continue
        link = doc.links.get(slug)
        if doc.presence not in LISTED:
            result.n_leaving += link is not None
        elif slug in doc.due_in:
            result.n_owed += link is None or owes_content(doc, link)
        else:
            result.n_lacking += 1
