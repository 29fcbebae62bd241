"""Deletes documents because a person says so, whatever their source has, and brings them back.

A deletion is one conditional write of each record. From then on it is due, and done by a run like any other work:
whoever dies, the next run finishes it.
"""

import asyncio
from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from ingest_assets.components import Components
from ingest_assets.discovering import listings_of
from ingest_assets.requests.members import members_of
from ingest_assets.requests.request import Request, RequestOutcome
from ingest_assets.requests.scope import Selected
from resources.clock import utc_now
from resources.document_source.document_ids import shown_key
from resources.document_state import removals
from resources.document_state.model import LISTED, DocStatus, LinkState, Presence
from sensors.taking import Partitions


class NotDeletedError(ValueError):
    """Somebody wants back what is not away."""


class Fate(StrEnum):
    """What became of a document that somebody wants gone."""

    DELETED = "deleted"  # out of every store that is configured, and nothing of it kept
    BUSY = "busy"  # a worker has it; nothing was changed
    DELETING = "deleting"  # asked for, and a store or the artifacts are not rid of it yet


class Deletion(msgspec.Struct, frozen=True):
    """A document and what became of it. `still_in`: stores that hold it, or into which nobody could look, and why."""

    document_id: str
    filename: str
    fate: Fate
    still_in: dict[str, str] = {}


class Deleting(Request):
    """Deletes documents, and restores them."""

    def delete(self, document_ids: Sequence[str]) -> list[Deletion]:
        """Have documents removed from every store, with all that was made of them and all that lies in them.

        Must be called as `run` is.
        """
        asyncio.run(self._recover())
        document_ids = [*document_ids, *asyncio.run(self._members(document_ids))]
        due = asyncio.run(self._request(document_ids))
        if due:
            self._do(RequestOutcome(Selected(due)))
        return asyncio.run(self._deletions(document_ids))

    def restore(self, document_ids: Sequence[str]) -> RequestOutcome:
        """Read deleted documents, and what lies in them, from their source again. Must be called as `run` is.

        Raises:
            NotDeletedError: one was not deleted; nothing was changed.
        """
        asyncio.run(self._recover())
        document_ids = [*document_ids, *asyncio.run(self._members(document_ids, only=Presence.ERASED))]
        asyncio.run(self._restore(document_ids))
        return self._do(RequestOutcome(Selected(list(document_ids))))

    async def _members(self, document_ids: Sequence[str], only: Presence | None = None) -> list[str]:
        """What lies in these documents and is there, or away as `only` says."""
        docs = list((await self._components.state.get_many(document_ids)).values())
        members = await members_of(self._components, docs)
        wanted = [only] if only else [*LISTED, Presence.VANISHED, Presence.DELETING]
        return sorted(doc.document_id for doc in members if doc.presence in wanted)

    async def _request(self, document_ids: Sequence[str]) -> list[str]:
        """Ask for the deletion of what is free and not deleted yet; gives what is to be done."""
        docs = (await self._components.state.get_many(document_ids)).values()
        now = utc_now()
        free = [doc for doc in docs if doc.claim is None and not _is_done(doc)]
        changes = [
            (removals.deletion_requested(doc, now), doc) for doc in free if doc.presence is not Presence.DELETING
        ]
        await self._components.state.set_many(changes)
        return [doc.document_id for doc in free]

    async def _deletions(self, document_ids: Sequence[str]) -> list[Deletion]:
        docs = await self._components.state.get_many(document_ids)
        stores = await self._components.targets()
        return [_deletion(docs[document_id], stores) for document_id in document_ids]

    async def _restore(self, document_ids: Sequence[str]) -> None:
        docs = list((await self._components.state.get_many(document_ids)).values())
        for doc in docs:
            if doc.presence is not Presence.ERASED:
                why = (
                    "is still being deleted: `ingest run --mode resume` finishes that"
                    if doc.presence is Presence.DELETING
                    else "was not deleted by anybody"
                )
                raise NotDeletedError(f"'{shown_key(doc.source_uri)}' {why}. Nothing was changed.")
        await restore(self._components, self._partitions, docs)


async def restore(components: Components, partitions: Partitions, docs: Sequence[DocStatus]) -> None:
    """Let deleted documents be owed to every store again; whoever has changed one meanwhile, that stands."""
    listings, sources = listings_of(components), await components.sources()
    for name in {doc.source for doc in docs} & sources.keys():
        await listings.hold(sources[name])  # its object may be gone, and no listing had to miss it so far
    partitions.add([doc.document_id for doc in docs])
    stores, now = tuple(await components.targets()), utc_now()
    await components.state.set_many([(removals.restored(doc, stores, now), doc) for doc in docs])


def _is_done(doc: DocStatus) -> bool:
    """Whether nothing is left to delete; a store that was not configured may be so by now."""
    return doc.presence is Presence.ERASED and not doc.links


def _deletion(doc: DocStatus, stores: Collection[str]) -> Deletion:
    fates = {Presence.ERASED: Fate.DELETED, Presence.DELETING: Fate.DELETING}
    fate = fates.get(doc.presence, Fate.BUSY)
    unknown = "it is not in ingest.toml, so nobody looked"
    still_in = {
        slug: link.error_message if link.state is LinkState.FAILED else unknown
        for slug, link in doc.links.items()
        if fate is not Fate.BUSY and (link.state is LinkState.FAILED or slug not in stores)
    }
    return Deletion(doc.document_id, shown_key(doc.source_uri), fate, still_in)
