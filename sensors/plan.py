"""Discovery: what a source has now against what is known, and the records that follow from it.

What it costs is in proportion to what changed: a listing is compared with the snapshot of the last one, which the state
confirms, and only documents that differ are looked at there. Nothing is lost by dying at any point: first the state
confirms no snapshot, then come partitions, records, the snapshot, and what confirms it; each step repeated changes
nothing.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from resources.clock import utc_now
from resources.document_source.document_ids import document_id, parent_of
from resources.document_source.document_source import DocumentSource
from resources.document_source.left_out import LeftOut
from resources.document_state import removals
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import LISTED, UNWANTED, Presence
from sensors.differences import Differences, compare
from sensors.discovered import Discovered
from sensors.groups import in_groups
from sensors.known import Known, below
from sensors.listing import Listings
from sensors.taking import Partitions, Taking, unwanted_containers

# A source that lost fewer documents than this is believed, whatever share of it they are.
_BELIEVED_LOSS = 20


class Discovery:
    """Lists one source and brings the records up to it."""

    def __init__(
        self,
        source: DocumentSource,
        state: DocumentStateStore,
        listings: Listings,
        stores: Sequence[str],
        max_vanished_share: float,
        grace: timedelta = timedelta(),
    ) -> None:
        """Put the parts together; `grace` is how long an object may be missing before its document is removed."""
        self._source = source
        self._state = state
        self._listings = listings
        self._stores = tuple(stores)
        self._max_vanished_share = max_vanished_share
        self._grace = grace
        self._known = Known(source, state)

    async def run(
        self,
        partitions: Partitions,
        clock: Callable[[], datetime],
        *,
        prefix: bytes = b"",
        limit: int | None = None,
        accept_vanished: bool = False,
        reconcile: bool = False,
    ) -> Discovered:
        """List, compare, and write what follows.

        Args:
            partitions: told of every document before its record exists.
            clock: the time.
            prefix: only what lies under it is listed, and only there something can vanish.
            limit: most changes to take; the rest is left for the next discovery.
            accept_vanished: believe a listing that lost a large share of what was known.
            reconcile: believe no snapshot; what is known is made from the records.

        Raises:
            SourceError: the listing failed; no document was changed.
        """
        listing = self._listings.of(self._source)
        known, lost = await self._known.confirmed(listing, clock(), prefix, reconcile=reconcile)
        left_out = LeftOut()
        found = self._compare(known, prefix, left_out, limit)
        found.renewed |= lost
        result = Discovered(n_unchanged=found.n_unchanged, incomplete=found.incomplete, left_out=left_out)
        result.truncated = found.n_news > len(found.news)
        vanished = found.vanished
        if not accept_vanished and self._looks_like_a_lie(found):
            vanished, result.vanished_refused = [], len(found.vanished)
        taking = Taking(self._source, self._state, self._stores, self._grace, listing, found, result)
        for listed in in_groups(sorted(found.news, key=lambda item: item.source_uri)):
            await taking.take(listed, partitions, clock())
        for gone in in_groups(vanished):
            await taking.lose(gone, clock())
        if found.renewed or listing.is_held:
            await listing.confirm(found.entries)
        return result

    async def preview(
        self, prefix: bytes = b"", clock: Callable[[], datetime] = utc_now
    ) -> tuple[list[tuple[str, str]], Discovered]:
        """What `run` would find: source URIs, each with `new`, `changed` or `vanished`. Changes nothing.

        Returns:
            The news, and a discovery that says what would not be believed, could not be listed or is left out.

        Raises:
            SourceError: the listing failed.
        """
        known = await self._known.looked_at(self._listings.of(self._source), clock(), prefix)
        left_out = LeftOut()
        found = self._compare(known, prefix, left_out)
        listed = {self.id_of(item.source_uri): item for item in found.news}
        unwanted = await unwanted_containers(self._state, self._source.org_id, found.news)
        gone = {self.id_of(uri): uri for uri in found.vanished}
        docs = await self._state.get_many([*listed, *gone])
        news = []
        for key, item in listed.items():
            doc = docs.get(key)
            if doc is None:
                if key not in self._state.damaged and parent_of(item.source_uri) not in unwanted:
                    news.append((item.source_uri, "new"))
            elif doc.presence not in UNWANTED and (
                doc.presence not in LISTED or doc.content_version != item.content_version
            ):
                news.append((item.source_uri, "changed"))
        doubts = Discovered(n_unchanged=found.n_unchanged, incomplete=found.incomplete, left_out=left_out)
        if self._looks_like_a_lie(found):
            doubts.vanished_refused = len(found.vanished)
        else:
            known_docs = [docs[key] for key in gone if key in docs and docs[key].presence in LISTED]
            lost = [removals.unlisted(doc, self._grace, clock()) for doc in known_docs]
            news += [(doc.source_uri, "vanished") for doc in lost if doc.presence is Presence.VANISHED]
        return news, doubts

    def id_of(self, uri: str) -> str:
        """The document id of one of the source's objects."""
        return document_id(self._source.org_id, uri)

    def _compare(
        self, known: dict[str, str], prefix: bytes, left_out: LeftOut, limit: int | None = None
    ) -> Differences:
        return compare(self._source.list_objects(prefix, left_out), known, below(self._source, prefix), limit)

    def _looks_like_a_lie(self, found: Differences) -> bool:
        return found.n_lost > max(_BELIEVED_LOSS, found.n_known * self._max_vanished_share)
