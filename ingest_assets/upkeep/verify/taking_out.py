"""Takes documents that nobody wants out of the stores."""

import asyncio
from collections.abc import Mapping

from ingest_assets.upkeep.verify.examining import Examined
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.stored_record import StoredRecord
from resources.store.store import Removal, Store


class TakingOut:
    """Takes documents out of the stores that hold them; their records are left as they are."""

    def __init__(self, state: DocumentStateStore, stores: Mapping[str, Store]) -> None:
        self._state = state
        self._stores = stores

    async def take_out(self, page: Examined, document_id: str, token: int = 0) -> None:
        """Take a document of a page out of each store that holds it.

        Args:
            page: as it was read.
            document_id: which document.
            token: the last one its record gave out; a store may remember a larger one.
        """
        seen = page.records.get(document_id)
        for slug, content in page.contents_of(document_id).items():
            if content is not None:
                await self._remove(self._stores[slug], document_id, seen, max(token, content.fencing_token))

    async def _remove(self, store: Store, document_id: str, seen: StoredRecord | None, token: int) -> None:
        """Take it out of one store, also of one that remembers a larger token than the rows it has."""
        [result] = await asyncio.to_thread(store.remove, [Removal(document_id, token)])
        if not result.fenced:
            return
        # Whoever was given the larger token since we looked has written the record before the store.
        now = (await self._state.examine_many([document_id])).get(document_id)
        if (now and now.stamp) == (seen and seen.stamp):
            await asyncio.to_thread(store.remove, [Removal(document_id, result.held_token)])
