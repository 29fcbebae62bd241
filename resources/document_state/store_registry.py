"""Stores as records: what the configuration says of each, and what was decided once and for all.

The configuration says what a store is called and where it is, and a record follows it. It may leave open which embedder
a store has: then it is the default of the moment the store was first recorded, and a later default changes no store
that exists. A store that is taken out of the configuration keeps its record, so that its data can be found.

A store that was out of the configuration while documents changed, or that is of another kind or has other options than
it had, may hold something else than the documents' records say. Its own record says so until somebody has looked.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from resources.records.backend import RecordBackend
from resources.records.decoding import readable
from resources.records.record import Record, Stamp, Write

KIND = "store"
_REMEDY = "The next run records it anew, if it is in ingest.toml."


class DeclaredStore(msgspec.Struct, frozen=True):
    """A store as the configuration has it.

    Attributes:
        slug: its name in URLs, commands and links; unique, and never another's.
        name: what people call it.
        kind: which kind of store it is.
        embedder: the embedder's name; "" leaves it open.
        config: its kind's options, if they are certain to hold no secret; None: they may, so they are not written down.
        is_default: whether it is the one that is meant when none is named.
    """

    slug: str
    name: str
    kind: str
    embedder: str
    config: dict[str, Any] | None
    is_default: bool


class StoreRecord(msgspec.Struct, frozen=True):
    """A store as it is recorded.

    Attributes:
        embedder: that of its data, or of what will be written into it first.
        look_at: from when on it is to be compared with the documents' records; None: these say what it holds.
    """

    slug: str
    name: str
    kind: str
    embedder: str
    config: dict[str, Any] | None
    is_default: bool
    created_at: datetime
    look_at: datetime | None = None

    @property
    def store_id(self) -> str:
        """What links are named by: the slug. A store is renamed by its name."""
        return self.slug

    def following(self, declared: DeclaredStore, now: datetime) -> "StoreRecord":
        """The record with all that the configuration decides. The embedder goes with the data: see `adopt`."""
        is_as_it_was = (self.kind, self.config) == (declared.kind, declared.config)
        return msgspec.structs.replace(
            self,
            name=declared.name,
            kind=declared.kind,
            config=declared.config,
            is_default=declared.is_default,
            look_at=self.look_at if is_as_it_was else self.look_at or now,
        )

    def left_out(self, now: datetime) -> "StoreRecord":
        """The record of a store the configuration lacks: it is meant by nobody, and nobody keeps up what it holds."""
        return msgspec.structs.replace(self, is_default=False, look_at=self.look_at or now)


class StoreRegistry:
    """Store records of a backend. Every change is conditional, so that several processes can begin at once.

    A damaged record of a configured store is recorded anew; nobody else minds one. Should the configuration leave open
    the embedder, and the store have another than the default, the store itself refuses vectors of the wrong one.
    """

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend

    async def all(self) -> dict[str, StoreRecord]:
        """Every recorded store, configured or not, by slug, but for damaged records."""
        return {record.slug: record for record, _ in await self._all()}

    async def register(
        self, declared: Iterable[DeclaredStore], default_embedder: str, now: datetime
    ) -> dict[str, StoreRecord]:
        """Record the stores that are not, and let the records of the others follow the configuration.

        Dying in between leaves some of them behind; the next call goes on. Repeated, it writes nothing.

        Returns:
            Every record, by slug.
        """
        wanted = {store.slug: store for store in declared}
        found = {record.slug: (record, stamp) for record, stamp in await self._all()}
        look_at = now if found else None  # of a store that is added: it may be another one under a new slug
        for slug, store in wanted.items():
            if slug not in found:
                found[slug] = await self._first(store, default_embedder, now, look_at)
        records = {}
        for slug, (record, stamp) in found.items():
            declared_as = wanted.get(slug)
            as_declared = record.following(declared_as, now) if declared_as else record.left_out(now)
            records[slug] = record if as_declared == record else await self._replaced(as_declared, stamp)
        return records

    async def adopt(self, record: StoreRecord, embedder: str) -> None:
        """The store's data is of another embedder from now on. Left to the next call if somebody changes the record."""
        await self._changed(record, msgspec.structs.replace(record, embedder=embedder))

    async def looked(self, record: StoreRecord, again_at: datetime | None) -> None:
        """A store was compared with the documents' records, or could not be yet. Left as it is if it has changed."""
        await self._changed(record, msgspec.structs.replace(record, look_at=again_at))

    async def forget(self, slug: str) -> None:
        """Remove a store's record; it has no data any more. Safe to repeat."""
        found = await self._backend.read(KIND, slug)
        if found is not None:
            await self._backend.compare_and_set(KIND, [Write(slug, None, found.stamp)])

    async def _first(
        self, store: DeclaredStore, default_embedder: str, now: datetime, look_at: datetime | None
    ) -> tuple[StoreRecord, Stamp]:
        """Record a store; if another process was faster, what that one has recorded."""
        found = await self._backend.read(KIND, store.slug)
        if found is not None and (recorded := self._readable(found)) is not None:
            return recorded, found.stamp
        record = StoreRecord(
            store.slug,
            store.name,
            store.kind,
            store.embedder or default_embedder,
            store.config,
            store.is_default,
            now,
            now if found is not None else look_at,
        )
        write = Write(store.slug, _encoded(record), found.stamp if found is not None else None)
        [result] = await self._backend.compare_and_set(KIND, [write])
        if result.written and result.stamp is not None:
            return record, result.stamp
        return await self._first(store, default_embedder, now, look_at)

    async def _changed(self, old: StoreRecord, new: StoreRecord) -> None:
        found = await self._backend.read(KIND, old.slug)
        if found is not None and self._readable(found) == old:
            await self._replaced(new, found.stamp)

    async def _replaced(self, record: StoreRecord, stamp: Stamp) -> StoreRecord:
        """Write a record, unless somebody has meanwhile: then theirs stands until the next call."""
        [result] = await self._backend.compare_and_set(KIND, [Write(record.slug, _encoded(record), stamp)])
        if result.written:
            return record
        found = await self._backend.read(KIND, record.slug)
        return (self._readable(found) if found is not None else None) or record

    async def _all(self) -> list[tuple[StoreRecord, Stamp]]:
        records = self._backend.list_records(KIND)
        return [(record, found.stamp) async for found in records if (record := self._readable(found)) is not None]

    def _readable(self, found: Record) -> StoreRecord | None:
        return readable(self._backend.uri, KIND, found, StoreRecord, _REMEDY)


def _encoded(record: StoreRecord) -> bytes:
    return msgspec.json.encode(record)
