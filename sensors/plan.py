"""Discovery: what a source has now against what is known, and the records that follow from it.

What it costs is in proportion to what changed: a listing is compared with the snapshot of the last one, which the state
confirms, and only documents that differ are looked at there. Nothing is lost by dying at any point: first the state
confirms no snapshot, then come partitions, records, the snapshot, and what confirms it; each step repeated changes
nothing.

Records may also be taken out of the state by somebody else, and no snapshot tells of that. So what it says is compared
with the records wherever this costs little: their number at every discovery, and below a prefix each of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol, TypeVar

from resources.clock import utc_now
from resources.document_source.document_ids import document_id, is_below, parent_of, source_uri
from resources.document_source.document_source import DocumentSource, SourceObject
from resources.document_state import removals, transitions
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.label import DocumentLabel
from resources.document_state.model import LISTED, UNWANTED, DocStatus, Presence
from sensors.differences import Differences, compare
from sensors.discovered import Discovered
from sensors.listing import Listing, Listings

CHUNK = 2_000
# A source that lost fewer documents than this is believed, whatever share of it they are.
_BELIEVED_LOSS = 20

T = TypeVar("T")


class Partitions(Protocol):
    """The set of documents Dagster knows."""

    def add(self, document_ids: Sequence[str]) -> None:
        """Make documents partitions; those that are already stay."""


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
        known, lost = await self._known(listing, clock(), prefix, reconcile=reconcile)
        found = self._compare(known, prefix, limit)
        found.renewed |= lost
        result = Discovered(n_unchanged=found.n_unchanged, incomplete=found.incomplete)
        result.truncated = found.n_news > len(found.news)
        vanished = found.vanished
        if not accept_vanished and self._looks_like_a_lie(found):
            vanished, result.vanished_refused = [], len(found.vanished)
        for chunk in _chunks(sorted(found.news, key=lambda item: item.source_uri)):
            await self._take(chunk, partitions, clock(), listing, found, result)
        for gone in _chunks(vanished):
            await self._lose(gone, clock(), listing, found, result)
        if found.renewed or listing.is_held:
            await listing.confirm(found.entries)
        return result

    async def preview(
        self, prefix: bytes = b"", clock: Callable[[], datetime] = utc_now
    ) -> tuple[list[tuple[str, str]], Discovered]:
        """What `run` would find: source URIs, each with `new`, `changed` or `vanished`. Changes nothing.

        Returns:
            The news, and a discovery that says what would not be believed or could not be listed.

        Raises:
            SourceError: the listing failed.
        """
        known = await self._listings.of(self._source).read(clock())
        if known is None or not await self._has_as_many(known):
            known = await self._from_records()
        else:
            await self._drop_lost(known, prefix)
        found = self._compare(known, prefix)
        listed = {self.id_of(item.source_uri): item for item in found.news}
        unwanted = await self._unwanted_containers(found.news)
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
        doubts = Discovered(n_unchanged=found.n_unchanged, incomplete=found.incomplete)
        if self._looks_like_a_lie(found):
            doubts.vanished_refused = len(found.vanished)
        else:
            lost = {key: self._without_object(docs[key], clock()) for key in gone if _is_listed(docs.get(key))}
            news += [(gone[key], "vanished") for key, doc in lost.items() if doc.presence is Presence.VANISHED]
        return news, doubts

    def id_of(self, uri: str) -> str:
        """The document id of one of the source's objects."""
        return document_id(self._source.org_id, uri)

    async def _known(
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
        start, n_known = self._start(prefix), len(known)
        for uris in _chunks([uri for uri in known if is_below(uri, start)]):
            by_id = {self.id_of(uri): uri for uri in uris}
            docs = await self._state.get_many(list(by_id))
            for key, uri in by_id.items():
                if not _is_listed(docs.get(key)):
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

    def _start(self, prefix: bytes) -> str:
        """The source URI of a prefix; "" for none."""
        return source_uri(self._source.name, prefix.rstrip(b"/")) if prefix else ""

    def _compare(self, known: dict[str, str], prefix: bytes, limit: int | None = None) -> Differences:
        return compare(self._source.list_objects(prefix), known, self._start(prefix), limit)

    def _looks_like_a_lie(self, found: Differences) -> bool:
        return found.n_lost > max(_BELIEVED_LOSS, found.n_known * self._max_vanished_share)

    async def _take(
        self,
        listed: Sequence[SourceObject],
        partitions: Partitions,
        now: datetime,
        listing: Listing,
        found: Differences,
        result: Discovered,
    ) -> None:
        """Create or renew the records of listed objects."""
        by_id = {self.id_of(item.source_uri): item for item in listed}
        known = await self._state.get_many(list(by_id))
        damaged = self._leave_damaged({key: item.source_uri for key, item in by_id.items()}, found, result)
        by_id = {key: item for key, item in by_id.items() if key not in damaged}
        unwanted = await self._unwanted_containers(item for key, item in by_id.items() if key not in known)
        by_id = {key: item for key, item in by_id.items() if parent_of(item.source_uri) not in unwanted or key in known}
        writes: list[tuple[DocStatus, DocStatus | None]] = []
        back: list[str] = []
        for key, item in by_id.items():
            doc = known.get(key)
            if doc is not None and doc.source_uri != item.source_uri:
                raise ValueError(f"Documents '{doc.source_uri}' and '{item.source_uri}' have the same id '{key}'.")
            if doc is None:
                writes.append((self._new(key, item, now), None))
                back.append(key)
            elif doc.presence in UNWANTED or (doc.claim is None and _is_unchanged(doc, item)):
                result.n_unchanged += 1
                found.agree(item.source_uri, item.content_version)
            elif doc.claim is not None:
                result.n_busy += 1
            else:
                writes.append((self._changed(doc, item, now), doc))
                if doc.presence is not Presence.PRESENT or doc.extraction.reason is not None:
                    back.append(key)
        if back:
            partitions.add(back)
        for (new, old), stored in zip(writes, await self._write(listing, writes), strict=True):
            if stored is None:
                result.n_busy += 1
                continue
            found.agree(new.source_uri, new.content_version)
            _count_taken(new, old, result)

    async def _unwanted_containers(self, listed: Iterable[SourceObject]) -> set[str]:
        """Containers of objects that a person had deleted: what is put into them is not wanted either."""
        parents = {parent for item in listed if (parent := parent_of(item.source_uri))}
        above = set(parents)
        while parents := {outer for parent in parents if (outer := parent_of(parent))}:
            above |= parents
        docs = await self._state.get_many([self.id_of(uri) for uri in above]) if above else {}
        away = {doc.source_uri for doc in docs.values() if doc.presence in UNWANTED}
        return {uri for uri in above if uri in away or any(is_below(uri, deleted) for deleted in away)}

    async def _lose(
        self, uris: Sequence[str], now: datetime, listing: Listing, found: Differences, result: Discovered
    ) -> None:
        """Mark the records of objects that are gone."""
        by_id = {self.id_of(uri): uri for uri in uris}
        known = await self._state.get_many(list(by_id))
        damaged = self._leave_damaged(by_id, found, result)
        writes: list[tuple[DocStatus, DocStatus | None]] = []
        for key, uri in by_id.items():
            doc = known.get(key)
            if key in damaged:
                continue
            if doc is None or not _is_listed(doc):
                found.drop(uri)
            elif doc.claim is not None:
                result.n_busy += 1
                found.agree(uri, "")
            elif (lost := self._without_object(doc, now)) is doc:
                result.n_missing += 1
                found.agree(uri, "")
            else:
                writes.append((lost, doc))
        for (new, _), stored in zip(writes, await self._write(listing, writes), strict=True):
            if stored is None:
                result.n_busy += 1
                found.agree(new.source_uri, "")
            elif new.presence is Presence.MISSING:
                result.n_missing += 1
                found.agree(new.source_uri, "")
            else:
                result.vanished.append(new.document_id)
                found.drop(new.source_uri)

    def _leave_damaged(self, uris: Mapping[str, str], found: Differences, result: Discovered) -> set[str]:
        """Those of objects just looked up whose record is damaged: they are looked at again until it is mended."""
        damaged = uris.keys() & self._state.damaged
        for key in damaged:
            found.agree(uris[key], "")
        result.n_damaged += len(damaged)
        return damaged

    async def _write(
        self, listing: Listing, writes: Sequence[tuple[DocStatus, DocStatus | None]]
    ) -> list[DocStatus | None]:
        if not writes:
            return []
        await listing.hold()
        return await self._state.set_many(writes)

    def _new(self, key: str, item: SourceObject, now: datetime) -> DocStatus:
        source = self._source
        return transitions.discovered(
            key, source.org_id, source.name, item.source_uri, item.content_version, item.size, self._stores, now
        )

    def _without_object(self, doc: DocStatus, now: datetime) -> DocStatus:
        """What becomes of a document whose object is not listed; itself while its grace period lasts."""
        if not self._grace:
            return removals.vanished(doc, now)
        # A time ahead of us is of a clock that was wrong then, or ours is now: the period begins again.
        if doc.missing_since is None or doc.missing_since > now:
            return removals.missing(doc, now)
        return removals.vanished(doc, now) if now - doc.missing_since >= self._grace else doc

    def _changed(self, doc: DocStatus, item: SourceObject, now: datetime) -> DocStatus:
        if doc.presence is Presence.MISSING and doc.content_version == item.content_version:
            return removals.reappeared(doc, now)
        return transitions.content_changed(doc, item.content_version, item.size, self._stores, now)


def _is_listed(doc: DocStatus | None) -> bool:
    return doc is not None and doc.presence in LISTED


def _is_unchanged(doc: DocStatus, item: SourceObject) -> bool:
    """Whether a document is present at the version that was listed."""
    return doc.presence is Presence.PRESENT and doc.content_version == item.content_version


def _count_taken(new: DocStatus, old: DocStatus | None, result: Discovered) -> None:
    """Count a document that was brought up to its object; one that was only missing is as it was."""
    if old is None:
        result.new.append(new.document_id)
    elif old.presence is Presence.MISSING and old.content_version == new.content_version:
        result.n_unchanged += 1
    else:
        result.changed.append(new.document_id)


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk
