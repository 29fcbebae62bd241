"""Records in a DynamoDB table: one item a record, every write conditional on the stamp."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from zlib import crc32

from resources.aws.location import AwsLocation
from resources.records.backend import RecordBackend, RecordTooLargeError, WrongOptionError
from resources.records.dynamodb.buckets import Page, Section, first_of_all
from resources.records.dynamodb.call_threads import CallThreads
from resources.records.dynamodb.calls import TableCalls
from resources.records.dynamodb.item import (
    BUCKETS,
    Item,
    buckets_of,
    due_key,
    due_text,
    end_of_due,
    is_possible,
    item_of,
    label_of,
    primary_key,
    record_of,
    too_large,
)
from resources.records.dynamodb.item_calls import KEYS_A_READ, delete_item, get_items, put_item
from resources.records.dynamodb.queries import Query, kinds_in
from resources.records.dynamodb.table import create_table
from resources.records.record import DueKey, OpenKey, Record, Stamp, Write

_LABELLED = ("bucket", "key", "label", "format")


class DynamoDbBackend(RecordBackend):
    """One table; see `item` for how records lie in it and `table` for its indexes.

    Reading and writing cost what is read and written. Listing what is due or open costs sixteen small requests and
    what is found; it comes from indexes that lag, so it is a hint. Listing and counting all records reads all of them.
    """

    counts_cheaply = False

    def __init__(self, location: AwsLocation) -> None:
        self.uri = location.uri
        self._calls = TableCalls(location)
        self._threads = CallThreads()

    async def create(self, *, shards: int | None = None) -> None:
        """Make the table and wait until it can be used. Safe to repeat, and for many at once.

        Raises:
            WrongOptionError: a table has no shards.
            BackendError: a table of this name has other keys or indexes, or this is not permitted.
            BackendUnavailableError: no answer, or it takes too long.
        """
        if shards is not None:
            raise WrongOptionError(f"State store {self.uri} is not kept in shards.")
        await self._threads.one(partial(create_table, self._calls))

    async def _read(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        wanted = [primary_key(kind, key) for key in dict.fromkeys(keys) if is_possible(key)]
        parts = [wanted[start : start + KEYS_A_READ] for start in range(0, len(wanted), KEYS_A_READ)]
        items = chain.from_iterable(await self._threads.each(partial(get_items, self._calls), parts))
        return {record.key: record for record in (self._calls.reading(record_of, item) for item in items)}

    async def _write(self, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]:
        items = [item_of(kind, write, stamp) if write.value is not None else None for write, stamp in writes]
        for (write, _), item in zip(writes, items, strict=True):
            reason = too_large(kind, write.key, item) if item else ""
            if reason:
                raise RecordTooLargeError(self.uri, kind, write.key, reason)
        return await self._threads.each(
            lambda number: self._write_one(kind, writes[number][0], items[number]), range(len(writes))
        )

    def _write_one(self, kind: str, write: Write, item: Item | None) -> bool:
        if item is not None:
            return put_item(self._calls, item, write.expected)
        if write.expected is None or not is_possible(write.key):
            return False  # removing what must be absent: the base class reads and sees that it is
        return delete_item(self._calls, kind, write.key, write.expected)

    async def _list(self, kind: str, after: str, limit: int, labels: Collection[str] | None) -> list[Record]:
        query = Query(self._calls, labels=labels)

        def page(section: Section) -> Page:
            items, reached = query.section(section)
            return Page([item for item in items if labels is None or self._label(item) in labels], reached)

        found = await first_of_all(partial(self._threads.each, page), buckets_of(kind), "key", after, limit)
        return [self._calls.reading(record_of, item) for item in found]

    async def _list_keys(self, kind: str, labels: Collection[str]) -> list[str]:
        query = Query(self._calls, attributes=_LABELLED, labels=labels)

        def keys(bucket: str) -> list[str]:
            return [item["key"]["S"] for item in query.whole(bucket) if self._label(item) in labels]

        return sorted(chain.from_iterable(await self._threads.each(keys, buckets_of(kind))))

    async def _list_open(self, kind: str) -> list[OpenKey]:
        query = Query(self._calls, index="open")

        def open_keys(bucket: str) -> list[OpenKey]:
            return [OpenKey(item["key"]["S"], self._label(item)) for item in query.whole(bucket)]

        return sorted(chain.from_iterable(await self._threads.each(open_keys, buckets_of(kind))))

    async def list_due_together(self, kind: str, now: datetime, limit: int, asker: str) -> list[str]:
        """See RecordBackend. Each asker begins with a bucket of its own and looks further where that is not enough.

        Records lie nowhere together here, but askers that stay apart do not refuse each other's claims.
        """
        buckets = buckets_of(kind)
        begin = crc32(asker.encode()) % BUCKETS
        buckets = buckets[begin:] + buckets[:begin]
        found: list[DueKey] = []
        for part in (buckets[:1], buckets[1:4], buckets[4:]):
            if len(found) < limit:
                found += await self._due_in(part, now, limit - len(found), None)
        return [due.key for due in found]

    async def _list_due(self, kind: str, now: datetime, limit: int | None, after: DueKey | None) -> list[DueKey]:
        return await self._due_in(buckets_of(kind), now, limit, after)

    async def _due_in(
        self, buckets: Sequence[str], now: datetime, limit: int | None, after: DueKey | None
    ) -> list[DueKey]:
        query = Query(self._calls, index="due")
        start, end = due_text(after.due_at, after.key) if after else "", end_of_due(now)
        if start >= end:
            return []
        read = partial(self._threads.each, partial(query.section, end=end))
        found = await first_of_all(read, buckets, "due", start, limit)
        return [self._calls.reading(due_key, item) for item in found]

    async def _list_kinds(self) -> list[str]:
        return sorted(set().union(*await self._threads.each(partial(kinds_in, self._calls), range(BUCKETS))))

    async def _count_labels(self, kind: str) -> dict[str, int]:
        query = Query(self._calls, attributes=_LABELLED)

        def count(bucket: str) -> Counter[str]:
            return Counter(self._label(item) for item in query.whole(bucket))

        return dict(sum(await self._threads.each(count, buckets_of(kind)), Counter()))

    async def close(self) -> None:
        """Give back threads and connections."""
        await self._threads.close()
        self._calls.close()

    def _label(self, item: Item) -> str:
        return self._calls.reading(label_of, item)
