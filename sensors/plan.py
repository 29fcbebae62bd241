"""Discovery: what a source has now against what is known, and the records that follow from it.

What it costs is in proportion to what changed: a listing is compared with the snapshot of the last one, which the state
confirms, and only documents that differ are looked at there. Nothing is lost by dying at any point: first the state
confirms no snapshot, then come partitions, records, the snapshot, and what confirms it; each step repeated changes
nothing.

Records may also be taken out of the state by somebody else, and no snapshot tells of that. So what it says is compared
with the records wherever this costs little: their number at every discovery, and below a prefix each of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

import msgspec

from resources.document_source.document_ids import document_id, source_uri
from resources.document_source.document_source import DocumentSource, SourceObject
from resources.document_state import transitions
from resources.document_state.document_state_store import DocumentStateStore, utc_now
from resources.document_state.label import DocumentLabel
from resources.document_state.model import DocStatus, Presence
from sensors.differences import Differences, compare, is_below
from sensors.listing import Listing, Listings

CHUNK = 2_000
# A source that lost fewer documents than this is believed, whatever share of it they are.
_BELIEVED_LOSS = 20

T = TypeVar("T")


class Partitions(Protocol):
    """The set of documents Dagster knows."""

    def add(self, document_ids: Sequence[str]) -> None:
        """Make documents partitions; those that are already stay."""


class Discovered(msgspec.Struct):
    """What a discovery did.

    Attributes:
        new, changed, vanished: ids of documents that became due by it.
        n_unchanged: objects listed that are as they were.
        n_busy: changed objects whose document a worker holds; the next listing sees them again.
        vanished_refused: how many missing documents were kept, because so many at once look like a source that lies.
        incomplete: what could not be listed; nothing was taken to have vanished then.
        truncated: more has changed than one discovery may take; the next one goes on.
    """

    new: list[str]
    changed: list[str]
    vanished: list[str]
    n_unchanged: int = 0
    n_busy: int = 0
    vanished_refused: int = 0
    truncated: bool = False
    incomplete: str = ""

    @property
    def n_listed(self) -> int:
        """How many objects were listed and looked at."""
        return self.n_unchanged + len(self.new) + len(self.changed) + self.n_busy


class Discovery:
    """Lists one source and brings the records up to it."""

    def __init__(
        self,
        source: DocumentSource,
        state: DocumentStateStore,
        listings: Listings,
        stores: Sequence[str],
        max_vanished_share: float,
    ) -> None:
        self._source = source
        self._state = state
        self._listings = listings
        self._stores = tuple(stores)
        self._max_vanished_share = max_vanished_share

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
        result = Discovered([], [], [], found.n_unchanged, incomplete=found.incomplete)
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
        gone = {self.id_of(uri): uri for uri in found.vanished}
        docs = await self._state.get_many([*listed, *gone])
        news = []
        for key, item in listed.items():
            doc = docs.get(key)
            if doc is None:
                news.append((item.source_uri, "new"))
            elif doc.presence is not Presence.PRESENT or doc.content_version != item.content_version:
                news.append((item.source_uri, "changed"))
        doubts = Discovered([], [], [], found.n_unchanged, incomplete=found.incomplete)
        if self._looks_like_a_lie(found):
            doubts.vanished_refused = len(found.vanished)
        else:
            news += [(uri, "vanished") for key, uri in gone.items() if _is_present(docs.get(key))]
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
        """Whether there are as many present records as entries, where it costs little to ask; else it is believed.

        A label does not say whose a document is. So where two organisations share a source's name the numbers differ
        at every discovery, and each reads the records: slower, never wrong.
        """
        if not self._state.counts_cheaply:
            return True
        counts = await self._state.counts()
        return sum(count for label, count in counts.items() if self._is_present_here(label)) == len(known)

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
                if not _is_present(docs.get(key)):
                    del known[uri]
        return len(known) < n_known

    async def _from_records(self) -> dict[str, str]:
        """The content version of every present record of the source."""
        present = self._state.iter_statuses(self._is_present_here)
        org_id = self._source.org_id
        return {doc.source_uri: doc.content_version async for doc in present if doc.org_id == org_id}

    def _is_present_here(self, label: DocumentLabel) -> bool:
        return label.source == self._source.name and label.presence is Presence.PRESENT

    def _start(self, prefix: bytes) -> str:
        """The source URI of a prefix; "" for none."""
        return source_uri(self._source.name, prefix.rstrip(b"/")) if prefix else ""

    def _compare(self, known: dict[str, str], prefix: bytes, limit: int | None = None) -> Differences:
        return compare(self._source.list_objects(prefix), known, self._start(prefix), limit)

    def _looks_like_a_lie(self, found: Differences) -> bool:
        known = len(found.vanished) + found.n_changed + found.n_unchanged
        return len(found.vanished) > max(_BELIEVED_LOSS, known * self._max_vanished_share)

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
        writes: list[tuple[DocStatus, DocStatus | None]] = []
        back: list[str] = []
        for key, item in by_id.items():
            doc = known.get(key)
            if doc is not None and doc.source_uri != item.source_uri:
                raise ValueError(f"Documents '{doc.source_uri}' and '{item.source_uri}' have the same id '{key}'.")
            if doc is None:
                writes.append((self._new(key, item, now), None))
                back.append(key)
            elif doc.claim is not None:
                result.n_busy += 1
            elif doc.presence is Presence.PRESENT and doc.content_version == item.content_version:
                result.n_unchanged += 1
                found.agree(item.source_uri, item.content_version)
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
            (result.new if old is None else result.changed).append(new.document_id)

    async def _lose(
        self, uris: Sequence[str], now: datetime, listing: Listing, found: Differences, result: Discovered
    ) -> None:
        """Mark the records of objects that are gone."""
        by_id = {self.id_of(uri): uri for uri in uris}
        known = await self._state.get_many(list(by_id))
        writes: list[tuple[DocStatus, DocStatus | None]] = []
        for key, uri in by_id.items():
            doc = known.get(key)
            if doc is None or not _is_present(doc):
                found.drop(uri)
            elif doc.claim is not None:
                result.n_busy += 1
                found.agree(uri, "")
            else:
                writes.append((transitions.vanished(doc, now), doc))
        for (new, _), stored in zip(writes, await self._write(listing, writes), strict=True):
            if stored is None:
                result.n_busy += 1
                found.agree(new.source_uri, "")
            else:
                result.vanished.append(new.document_id)
                found.drop(new.source_uri)

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

    def _changed(self, doc: DocStatus, item: SourceObject, now: datetime) -> DocStatus:
        return transitions.content_changed(doc, item.content_version, item.size, self._stores, now)


def _is_present(doc: DocStatus | None) -> bool:
    return doc is not None and doc.presence is Presence.PRESENT


def total(results: Mapping[str, Discovered]) -> Discovered:
    """The discoveries of several sources as one."""
    whole = Discovered([], [], [])
    for result in results.values():
        whole.new += result.new
        whole.changed += result.changed
        whole.vanished += result.vanished
        whole.n_unchanged += result.n_unchanged
        whole.n_busy += result.n_busy
        whole.vanished_refused += result.vanished_refused
        whole.truncated |= result.truncated
        whole.incomplete = whole.incomplete or result.incomplete
    return whole


def describe(found: Discovered) -> str:
    """A discovery in a sentence or two."""
    counts = f"{len(found.new)} new, {len(found.changed)} changed, {len(found.vanished)} vanished"
    parts = [f"{counts}, {found.n_unchanged} unchanged."]
    if found.n_busy:
        parts.append(f"{found.n_busy} are being worked on and are looked at again.")
    if found.incomplete:
        parts.append(found.incomplete)
    if found.truncated:
        parts.append("There is more; the next listing goes on.")
    if found.vanished_refused:
        parts.append(
            f"{found.vanished_refused} known documents were not listed. So many at once look like a source that is not "
            "whole, so nothing was removed. If they are really gone: `ingest run --accept-vanished`."
        )
    return " ".join(parts)


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk
