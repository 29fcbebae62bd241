"""What is known of a source's objects: the entries of the confirmed snapshot, as far as the records bear them out.

Records may be taken out of the state by somebody else, and no snapshot tells of that. So what it says is compared with
the records wherever this costs little: their number at every discovery, and below a prefix each of them.
"""

from datetime import datetime

from resources.document_source.document_ids import document_id, is_below, source_uri
from resources.document_source.document_source import DocumentSource
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.label import DocumentLabel
from resources.document_state.model import LISTED, UNWANTED, Presence
from sensors.groups import in_groups
from sensors.listing import Listing


class Known:
    """Content versions by source URI; "" for objects that are to be looked at again."""

    def __init__(self, source: DocumentSource, state: DocumentStateStore) -> None:
        self._source = source
        self._state = state

    async def confirmed(
        self, listing: Listing, now: datetime, prefix: bytes, *, reconcile: bool
    ) -> tuple[dict[str, str], bool]:
        """The entries of the confirmed snapshot, and whether some were dropped because their records are lost.

        They are made from the records if none is confirmed, if it is time or wanted, or if their number differs.
        """
        known = await listing.read(now)
        if known is not None and not reconcile and await self._has_as_many(known):
            return known, await self._drop_lost(known, prefix)
        await listing.hold()  # before the records are read: who writes one from now on learns that we did
        known = await self._from_records()
        await listing.confirm(known, reconciled_at=now)
        return known, False

    async def looked_at(self, listing: Listing, now: datetime, prefix: bytes) -> dict[str, str]:
        """The same entries, for whoever changes nothing."""
        known = await listing.read(now)
        if known is None or not await self._has_as_many(known):
            return await self._from_records()
        await self._drop_lost(known, prefix)
        return known

    async def _has_as_many(self, known: dict[str, str]) -> bool:
        """Whether there are as many records as entries, where it costs little to ask; else it is believed.

        A document that a person had deleted has an entry or not, as its object was listed since or not.

        A label does not say whose a document is. So where two organisations share a source's name the numbers differ
        at every discovery, and each reads the records: slower, never wrong.
        """
        if not self._state.counts_cheaply:
            return True
        counts = await self._state.counts()
        n_listed = sum(count for label, count in counts.items() if self._is_listed_here(label))
        n_unwanted = sum(count for label, count in counts.items() if self._is_here(label, UNWANTED))
        return n_listed <= len(known) <= n_listed + n_unwanted

    async def _drop_lost(self, known: dict[str, str], prefix: bytes) -> bool:
        """Drop the entries below a prefix that have no present record any more, so that the listing shows them as new.

        Nothing is looked at without a prefix: it would be every record. Returns whether one was dropped.
        """
        if not prefix:
            return False
        start, n_known = below(self._source, prefix), len(known)
        for uris in in_groups([uri for uri in known if is_below(uri, start)]):
            by_id = {document_id(self._source.org_id, uri): uri for uri in uris}
            docs = await self._state.get_many(list(by_id))
            for key, uri in by_id.items():
                if key not in docs or docs[key].presence not in LISTED:
                    del known[uri]
        return len(known) < n_known

    async def _from_records(self) -> dict[str, str]:
        """The content version of every present record of the source; "" for those that a listing lacked."""
        listed = self._state.iter_statuses(self._is_listed_here)
        org_id = self._source.org_id
        return {
            doc.source_uri: doc.content_version if doc.presence is Presence.PRESENT else ""
            async for doc in listed
            if doc.org_id == org_id
        }

    def _is_listed_here(self, label: DocumentLabel) -> bool:
        return self._is_here(label, LISTED)

    def _is_here(self, label: DocumentLabel, presences: frozenset[Presence]) -> bool:
        return label.source == self._source.name and label.presence in presences


def below(source: DocumentSource, prefix: bytes) -> str:
    """The source URI of a key prefix; "" for none."""
    return source_uri(source.name, prefix.rstrip(b"/")) if prefix else ""
