"""Discovery: what a source has now against what is known, and the records that follow from it.

Nothing here is lost by dying at any point: partitions are added before records, records before the snapshot, and each
step repeated changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

import msgspec

from resources.document_source.document_ids import document_id, source_uri
from resources.document_source.document_source import DocumentSource, SourceError, SourceObject
from resources.document_state import transitions
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import DocStatus, Presence
from sensors.listing_snapshot import Listed, ListingSnapshots

CHUNK = 2_000
# A source that lost fewer documents than this is believed, whatever share of it they are.
_BELIEVED_LOSS = 20

T = TypeVar("T")


class Partitions(Protocol):
    """The set of documents Dagster knows."""

    def add(self, document_ids: Sequence[str]) -> None:
        """Make documents partitions; those that are already stay."""


class Differences(msgspec.Struct):
    """A listing against what is known. `vanished` are document ids; `incomplete` says what could not be listed."""

    appeared: list[SourceObject]
    changed: list[SourceObject]
    vanished: list[str]
    n_unchanged: int = 0
    incomplete: str = ""


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


class Discovery:
    """Lists one source and brings the records up to it."""

    def __init__(
        self,
        source: DocumentSource,
        state: DocumentStateStore,
        snapshots: ListingSnapshots,
        stores: Sequence[str],
        max_vanished_share: float,
    ) -> None:
        self._source = source
        self._state = state
        self._snapshots = snapshots
        self._stores = tuple(stores)
        self._max_vanished_share = max_vanished_share

    async def compare(self, prefix: bytes = b"") -> Differences:
        """List the source, or what lies under a prefix, and compare with what is known. Changes nothing.

        The snapshot is a hint: an object counts as unchanged only if its document's record is there as well, and what
        vanished is what records say is present and the listing does not have. A snapshot that is lost, old or
        overwritten by another process costs a look at the records and nothing else.

        Raises:
            SourceError: the listing failed; nothing may be concluded.
        """
        source = self._source
        present = set(
            await self._state.list_ids(lambda label: label.source == source.name and label.presence is Presence.PRESENT)
        )
        snapshot = self._snapshots.read(source.name)
        found = Differences([], [], [])
        seen: set[str] = set()
        try:
            for listed in source.list_objects(prefix):
                last = snapshot.get(listed.source_uri)
                key = last.document_id if last else self.id_of(listed.source_uri)
                seen.add(key)
                if last is None or key not in present:
                    found.appeared.append(listed)
                elif last.content_version != listed.content_version:
                    found.changed.append(listed)
                else:
                    found.n_unchanged += 1
        except SourceError as error:
            if not error.partial:
                raise
            found.incomplete = str(error)
            return found
        found.vanished = sorted(await self._under(prefix, present - seen, snapshot))
        return found

    async def run(
        self,
        partitions: Partitions,
        clock: Callable[[], datetime],
        *,
        prefix: bytes = b"",
        limit: int | None = None,
        accept_vanished: bool = False,
    ) -> Discovered:
        """List, compare, and write what follows.

        Args:
            partitions: told of every document before its record exists.
            clock: the time.
            prefix: only what lies under it is listed, and only there something can vanish.
            limit: most changes to take; the rest is left for the next discovery.
            accept_vanished: believe a listing that lost a large share of what was known.

        Raises:
            SourceError: the listing failed; nothing was changed.
        """
        found = await self.compare(prefix)
        result = Discovered([], [], [], found.n_unchanged, incomplete=found.incomplete)
        changes = sorted(found.appeared + found.changed, key=lambda listed: listed.source_uri)
        if limit is not None and len(changes) > limit:
            changes, result.truncated = changes[:limit], True
        vanished = found.vanished
        if not accept_vanished and self._looks_like_a_lie(found):
            vanished, result.vanished_refused = [], len(found.vanished)
        if not changes and not vanished:
            return result
        snapshot = self._snapshots.read(self._source.name)
        for chunk in _chunks(changes):
            await self._take(chunk, partitions, clock, snapshot, result)
        for gone in _chunks(vanished):
            await self._lose(gone, clock, snapshot, result)
        self._snapshots.write(self._source.name, snapshot)
        return result

    async def preview(self, prefix: bytes = b"") -> tuple[list[tuple[str, str]], Discovered]:
        """What `run` would find: source URIs, each with `new`, `changed` or `vanished`. Changes nothing.

        Returns:
            The news, and a discovery that says what would not be believed or could not be listed.

        Raises:
            SourceError: the listing failed.
        """
        found = await self.compare(prefix)
        listed = {self.id_of(item.source_uri): item for item in found.appeared + found.changed}
        known = await self._state.get_many([*listed, *found.vanished])
        news = []
        for key, item in listed.items():
            doc = known.get(key)
            if doc is None:
                news.append((item.source_uri, "new"))
            elif doc.presence is not Presence.PRESENT or doc.content_version != item.content_version:
                news.append((item.source_uri, "changed"))
        doubts = Discovered([], [], [], found.n_unchanged, incomplete=found.incomplete)
        if self._looks_like_a_lie(found):
            doubts.vanished_refused = len(found.vanished)
        else:
            news += [(known[key].source_uri, "vanished") for key in found.vanished if key in known]
        return news, doubts

    def id_of(self, uri: str) -> str:
        """The document id of one of the source's objects."""
        return document_id(self._source.org_id, uri)

    async def _under(self, prefix: bytes, document_ids: set[str], snapshot: Mapping[str, Listed]) -> set[str]:
        """Those of the documents that lie under a prefix; only ids the snapshot does not know need their record."""
        if not prefix:
            return document_ids
        start = source_uri(self._source.name, prefix.rstrip(b"/"))
        uris = {last.document_id: uri for uri, last in snapshot.items() if last.document_id in document_ids}
        unknown = await self._state.get_many(document_ids - uris.keys())
        uris |= {key: doc.source_uri for key, doc in unknown.items()}
        return {key for key, uri in uris.items() if uri == start or uri.startswith(start + "/")}

    def _looks_like_a_lie(self, found: Differences) -> bool:
        known = len(found.vanished) + len(found.changed) + found.n_unchanged
        return len(found.vanished) > max(_BELIEVED_LOSS, known * self._max_vanished_share)

    async def _take(
        self,
        listed: Sequence[SourceObject],
        partitions: Partitions,
        clock: Callable[[], datetime],
        snapshot: dict[str, Listed],
        result: Discovered,
    ) -> None:
        """Create or renew the records of listed objects."""
        by_id = {self.id_of(item.source_uri): item for item in listed}
        known = await self._state.get_many(list(by_id))
        now = clock()
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
                snapshot[item.source_uri] = Listed(item.content_version, key)
                result.n_unchanged += 1
            else:
                writes.append((self._changed(doc, item, now), doc))
                if doc.presence is not Presence.PRESENT or doc.extraction.reason is not None:
                    back.append(key)
        if back:
            partitions.add(back)
        for (new, old), stored in zip(writes, await self._state.set_many(writes), strict=True):
            if stored is None:
                result.n_busy += 1
                continue
            snapshot[new.source_uri] = Listed(new.content_version, new.document_id)
            (result.new if old is None else result.changed).append(new.document_id)

    def _new(self, key: str, item: SourceObject, now: datetime) -> DocStatus:
        source = self._source
        return transitions.discovered(
            key, source.org_id, source.name, item.source_uri, item.content_version, item.size, self._stores, now
        )

    def _changed(self, doc: DocStatus, item: SourceObject, now: datetime) -> DocStatus:
        return transitions.content_changed(doc, item.content_version, item.size, self._stores, now)

    async def _lose(
        self,
        document_ids: Sequence[str],
        clock: Callable[[], datetime],
        snapshot: dict[str, Listed],
        result: Discovered,
    ) -> None:
        """Mark the records of objects that are gone."""
        known = await self._state.get_many(document_ids)
        now = clock()
        free = [doc for doc in known.values() if doc.claim is None and doc.presence is Presence.PRESENT]
        stored = await self._state.set_many([(transitions.vanished(doc, now), doc) for doc in free])
        for doc in stored:
            if doc is not None:
                result.vanished.append(doc.document_id)
                snapshot.pop(doc.source_uri, None)
        result.n_busy += len(document_ids) - sum(doc is not None for doc in stored)


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
