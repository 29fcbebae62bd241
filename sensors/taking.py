"""What a discovery writes: records of listed objects are made or renewed, those of objects that are gone are marked."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from resources.document_source.document_ids import document_id, is_below, parent_of
from resources.document_source.document_source import DocumentSource, SourceObject
from resources.document_state import removals, transitions
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import LISTED, UNWANTED, DocStatus, Presence
from sensors.differences import Differences
from sensors.discovered import Discovered
from sensors.listing import Listing

_Changes = list[tuple[DocStatus, DocStatus | None]]


class Partitions(Protocol):
    """The set of documents Dagster knows."""

    def add(self, document_ids: Sequence[str]) -> None:
        """Make documents partitions; those that are already stay."""


class Taking:
    """One discovery's way from differences to records. What it writes, it counts, and agrees on with the entries."""

    def __init__(
        self,
        source: DocumentSource,
        state: DocumentStateStore,
        stores: tuple[str, ...],
        grace: timedelta,
        listing: Listing,
        found: Differences,
        result: Discovered,
    ) -> None:
        """Put the parts together.

        Args:
            source: what was listed.
            state: where the records are.
            stores: the stores that documents are due in.
            grace: how long an object may be missing before its document is removed.
            listing: held before anything is written.
            found: the differences; its entries are brought up to what is written.
            result: counts what was done.
        """
        self._source = source
        self._state = state
        self._stores = stores
        self._grace = grace
        self._listing = listing
        self._found = found
        self._result = result

    async def take(self, listed: Sequence[SourceObject], partitions: Partitions, now: datetime) -> None:
        """Create or renew the records of listed objects."""
        by_id = {document_id(self._source.org_id, item.source_uri): item for item in listed}
        known = await self._state.get_many(list(by_id))
        damaged = self._leave_damaged({key: item.source_uri for key, item in by_id.items()})
        new = [item for key, item in by_id.items() if key not in known and key not in damaged]
        unwanted = await unwanted_containers(self._state, self._source.org_id, new)
        changes: _Changes = []
        back: list[str] = []  # documents that are to be partitions before their records are written
        for key, item in by_id.items():
            doc = known.get(key)
            if key in damaged or (doc is None and parent_of(item.source_uri) in unwanted):
                continue
            if doc is None:
                changes.append((self._new(key, item, now), None))
                back.append(key)
            elif (changed := self._renewed(doc, item, now)) is not None:
                changes.append((changed, doc))
                if doc.presence is not Presence.PRESENT or doc.extraction.reason is not None:
                    back.append(key)
        if back:
            partitions.add(back)
        for new_doc, old, stored in await self._written(changes):
            if stored:
                self._found.agree(new_doc.source_uri, new_doc.content_version)
                self._count_taken(new_doc, old)

    async def lose(self, uris: Sequence[str], now: datetime) -> None:
        """Mark the records of objects that are gone."""
        by_id = {document_id(self._source.org_id, uri): uri for uri in uris}
        known = await self._state.get_many(list(by_id))
        damaged = self._leave_damaged(by_id)
        changes: _Changes = []
        for key, uri in by_id.items():
            doc = known.get(key)
            if key in damaged:
                continue
            if doc is None or doc.presence not in LISTED:
                self._found.drop(uri)
            elif doc.claim is not None:
                self._result.n_busy += 1
                self._found.agree(uri, "")
            elif (lost := removals.unlisted(doc, self._grace, now)) is doc:
                self._result.n_missing += 1
                self._found.agree(uri, "")
            else:
                changes.append((lost, doc))
        for lost, _, stored in await self._written(changes):
            if stored and lost.presence is Presence.VANISHED:
                self._result.vanished.append(lost.document_id)
                self._found.drop(lost.source_uri)
                continue
            if stored:
                self._result.n_missing += 1
            self._found.agree(lost.source_uri, "")

    def _leave_damaged(self, uris: Mapping[str, str]) -> set[str]:
        """Those of objects just looked up whose record is damaged: they are looked at again until it is mended."""
        damaged = uris.keys() & self._state.damaged
        for key in damaged:
            self._found.agree(uris[key], "")
        self._result.n_damaged += len(damaged)
        return damaged

    async def _written(self, changes: _Changes) -> list[tuple[DocStatus, DocStatus | None, bool]]:
        """Write changes; each with whether it is stored. One that is not is of a document somebody was faster with."""
        if not changes:
            return []
        await self._listing.hold()
        stored = [doc is not None for doc in await self._state.set_many(changes)]
        self._result.n_busy += stored.count(False)
        return [(new, old, is_stored) for (new, old), is_stored in zip(changes, stored, strict=True)]

    def _new(self, key: str, item: SourceObject, now: datetime) -> DocStatus:
        source = self._source
        return transitions.discovered(
            key, source.org_id, source.name, item.source_uri, item.content_version, item.size, self._stores, now
        )

    def _renewed(self, doc: DocStatus, item: SourceObject, now: datetime) -> DocStatus | None:
        """A known document brought up to its object; None, and counted, if that is not to be or not now."""
        if doc.source_uri != item.source_uri:
            raise ValueError(
                f"Documents '{doc.source_uri}' and '{item.source_uri}' have the same id '{doc.document_id}'."
            )
        is_same = doc.content_version == item.content_version
        if doc.presence in UNWANTED or (doc.claim is None and doc.presence is Presence.PRESENT and is_same):
            self._result.n_unchanged += 1
            self._found.agree(item.source_uri, item.content_version)
            return None
        if doc.claim is not None:
            self._result.n_busy += 1
            return None
        if doc.presence is Presence.MISSING and is_same:
            return removals.reappeared(doc, now)
        return transitions.content_changed(doc, item.content_version, item.size, self._stores, now)

    def _count_taken(self, new: DocStatus, old: DocStatus | None) -> None:
        """Count a document that was brought up to its object; one that was only missing is as it was."""
        if old is None:
            self._result.new.append(new.document_id)
        elif old.presence is Presence.MISSING and old.content_version == new.content_version:
            self._result.n_unchanged += 1
        else:
            self._result.changed.append(new.document_id)


async def unwanted_containers(state: DocumentStateStore, org_id: str, listed: Iterable[SourceObject]) -> set[str]:
    """Containers of objects that a person had deleted: what is put into them is not wanted either."""
    parents = {parent for item in listed if (parent := parent_of(item.source_uri))}
    above = set(parents)
    while parents := {outer for parent in parents if (outer := parent_of(parent))}:
        above |= parents
    docs = await state.get_many([document_id(org_id, uri) for uri in above]) if above else {}
    away = {doc.source_uri for doc in docs.values() if doc.presence in UNWANTED}
    return {uri for uri in above if uri in away or any(is_below(uri, deleted) for deleted in away)}
