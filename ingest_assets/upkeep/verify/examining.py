"""Goes through all records and all stores, a page at a time, and looks at what differs once more: the world moves.

Memory is what one page of documents needs, whatever there is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

import msgspec

from ingest_assets.upkeep.verify.comparing import compare, held_of, needs_artifact, says_it_is_held
from ingest_assets.upkeep.verify.difference import Difference, Differences, What
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_store import ArtifactStore
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import GONE
from resources.document_state.stored_record import StoredRecord
from resources.store.store import HeldContent, Store

PAGE = 200  # documents that are read together
_IDS_A_PAGE = 10_000


class Examined(msgspec.Struct, frozen=True):
    """A page of documents, as their records, artifacts and stores have them."""

    records: Mapping[str, StoredRecord]
    artifacts: Mapping[str, Artifact]
    contents: Mapping[str, Mapping[str, HeldContent]]

    def artifact_of(self, document_id: str) -> Artifact | None:
        """What a document's record names, if that is whole."""
        doc = self.records[document_id].doc
        return self.artifacts.get(doc.artifact) if doc is not None else None

    def contents_of(self, document_id: str) -> dict[str, HeldContent | None]:
        """What each store holds of a document."""
        return {slug: found.get(document_id) for slug, found in self.contents.items()}


class Examiner:
    """Compares records, artifacts and stores; changes nothing."""

    def __init__(self, state: DocumentStateStore, artifacts: ArtifactStore, stores: Mapping[str, Store]) -> None:
        self._state = state
        self._artifacts = artifacts
        self._stores = stores

    async def all(self, advance: Callable[[int], None] = lambda _: None) -> Differences:
        """Every difference of all documents; told how many it has looked at."""
        result = Differences()
        page: list[str] = []
        async for stored in self._state.iter_examined():
            page.append(stored.document_id)
            result.n_unchecked += not stored.is_checked
            if len(page) == PAGE:
                await self._add_page(result, page)
                advance(len(page))
                page = []
        await self._add_page(result, page)
        advance(len(page))
        for slug, store in self._stores.items():
            async for ids in _pages_of(store):
                known = await self._state.examine_many(ids)
                result.found += [_unknown(key, slug) for key in ids if key not in known]
        return result

    async def some(self, document_ids: Collection[str]) -> Differences:
        """Every difference of these documents, also of ones without a record."""
        result = Differences()
        ids = list(dict.fromkeys(document_ids))
        for start in range(0, len(ids), PAGE):
            await self._add_page(result, ids[start : start + PAGE])
        return result

    async def read(self, document_ids: Sequence[str]) -> Examined:
        """A page of documents, records first: what a store holds by then is no older than its record."""
        records = await self._state.examine_many(document_ids)
        docs = [stored.doc for stored in records.values() if stored.doc is not None and stored.doc.artifact]
        artifacts = await asyncio.to_thread(self._artifacts.get_many, [doc.artifact for doc in docs])
        contents = {
            slug: await asyncio.to_thread(store.held_contents, document_ids) for slug, store in self._stores.items()
        }
        return Examined(records, artifacts, contents)

    async def owed(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """By store, which of these documents it owes: due there, not said to be held, and not rightly held."""
        owed: dict[str, list[str]] = {}
        for start in range(0, len(document_ids), PAGE):
            page = await self.read(document_ids[start : start + PAGE])
            for key, stored in page.records.items():
                doc, artifact = stored.doc, page.artifact_of(key)
                if doc is None or artifact is None or not needs_artifact(doc):
                    continue
                for slug, content in page.contents_of(key).items():
                    link = doc.links.get(slug)
                    is_owed = slug in doc.due_in and (link is None or not says_it_is_held(link))
                    if is_owed and not held_of(doc, artifact, content).is_right:
                        owed.setdefault(slug, []).append(key)
        return owed

    async def _add_page(self, result: Differences, document_ids: Sequence[str]) -> None:
        if not document_ids:
            return
        page = await self.read(document_ids)
        found, busy = self._differences(page, document_ids)
        if found:
            # Somebody may have written between our two looks at records and stores.
            again, busy_now = self._differences(
                await self.read(list(dict.fromkeys(difference.document_id for difference in found))), document_ids
            )
            seen = {difference.key for difference in again}
            found = [difference for difference in found if difference.key in seen]
            busy |= busy_now
        result.found += found
        is_gone = (stored.doc is not None and stored.doc.presence in GONE for stored in page.records.values())
        result.n_documents += len(document_ids) - sum(is_gone)
        result.n_busy += len(busy)

    def _differences(self, page: Examined, document_ids: Sequence[str]) -> tuple[list[Difference], set[str]]:
        busy = {key for key, stored in page.records.items() if stored.doc is not None and stored.doc.claim is not None}
        found = [
            difference
            for key, stored in page.records.items()
            if key not in busy
            for difference in compare(stored, page.artifact_of(key), page.contents_of(key))
        ]
        for slug, contents in page.contents.items():
            found += [_unknown(key, slug) for key in contents if key not in page.records]
        return found, busy & set(document_ids)


def _unknown(document_id: str, slug: str) -> Difference:
    return Difference(document_id, slug, What.UNKNOWN, "no record")


async def _pages_of(store: Store) -> AsyncIterator[list[str]]:
    after = ""
    while page := await asyncio.to_thread(store.held_ids, after, _IDS_A_PAGE):
        yield page
        after = page[-1]


def ids_of(found: Sequence[Difference]) -> list[str]:
    """The documents with differences, once each."""
    return list(dict.fromkeys(difference.document_id for difference in found))


def lost_records(found: Sequence[Difference]) -> list[str]:
    """Documents whose record is to be made again."""
    return ids_of([difference for difference in found if difference.what in (What.UNKNOWN, What.RECORD_DAMAGED)])
