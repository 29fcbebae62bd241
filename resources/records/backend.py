"""The contract of every record backend: the base class owns the rules, a subclass the input and output.

There is no unconditional write. Whatever changes and must last (documents, workers, jobs, sources) is a record.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from typing import ClassVar

from resources.records.record import DueKey, OpenKey, Record, Stamp, Write, WriteResult, fresh_write_id

PAGE = 1_000


class BackendError(Exception):
    """A record backend could not do its work. `uri` names it, without secrets; `message` says what happened."""

    def __init__(self, uri: str, message: str) -> None:
        super().__init__(f"State store {uri}: {message}")
        self.uri = uri
        self.message = message


class BackendUnavailableError(BackendError):
    """It did not answer in time or was busy. Trying again can help."""


class BackendCorruptError(BackendError):
    """What it holds cannot be read. Trying again cannot help."""


class WrongOptionError(ValueError):
    """Something was asked of a backend that it does not have."""


class RecordTooLargeError(BackendError):
    """A record is larger than the backend can hold; nothing was written. `key` names it."""

    def __init__(self, uri: str, kind: str, key: str, message: str) -> None:
        super().__init__(uri, f"{kind} '{key}' {message}")
        self.kind = kind
        self.key = key


class RecordBackend(ABC):
    """Compare-and-set records by kind and key. Safe for many threads and processes at once.

    Attributes:
        uri: names it, without secrets.
        counts_cheaply: `count_labels` costs little beside listing a source, so that every discovery may ask it.
    """

    counts_cheaply: ClassVar[bool] = True

    uri: str

    async def create(self, *, shards: int | None = None) -> None:
        """Make what records are kept in, where it is not there yet: a file, a layout, a table. Safe to repeat.

        Args:
            shards: over how many objects a kind is spread, where a backend has such.

        Raises:
            WrongOptionError: the backend has no shards, or has others already.
        """
        if shards is not None:
            raise WrongOptionError(f"State store {self.uri} is not kept in shards.")
        await self.list_kinds()

    async def read(self, kind: str, key: str) -> Record | None:
        """One record, or None."""
        return (await self.read_many(kind, [key])).get(key)

    async def read_many(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        """The records that exist among `keys`."""
        return await self._read(kind, keys) if keys else {}

    async def compare_and_set(self, kind: str, writes: Sequence[Write]) -> list[WriteResult]:
        """Try each write on its own condition; a result each, in order.

        A refused write is looked at again: if the record carries the write id we sent, or one of the next few writes
        built on it, the write had been committed and only its reply was lost, so it counts as written.

        Raises:
            ValueError: two writes name the same key, a key is empty, or a time has no zone.
            RecordTooLargeError: one of the records is too large; none was written.
            BackendUnavailableError: nothing is known about any of the writes; reading tells.
        """
        if len({write.key for write in writes}) != len(writes):
            raise ValueError("Each key may be written once a call.")
        for write in writes:
            if not write.key:
                raise ValueError("A key is never empty.")
            if write.due_at is not None and write.due_at.tzinfo is None:
                raise ValueError(f"{kind} '{write.key}': its due time has no zone.")
        if not writes:
            return []
        write_id = fresh_write_id()
        first = Stamp.after(None, write_id)
        stamps = [first if write.expected is None else Stamp.after(write.expected, write_id) for write in writes]
        done = await self._write(kind, list(zip(writes, stamps, strict=True)))
        refused = [write.key for write, ok in zip(writes, done, strict=True) if not ok]
        current = await self.read_many(kind, refused)
        results = []
        for write, stamp, ok in zip(writes, stamps, done, strict=True):
            found = None if ok else current.get(write.key)
            found_stamp = found.stamp if found else None
            includes_ours = found_stamp is not None and found_stamp.includes(stamp)
            if ok or includes_ours or (write.value is None and found is None):
                results.append(WriteResult(write.key, written=True, stamp=stamp if write.value is not None else None))
            else:
                results.append(WriteResult(write.key, written=False, stamp=found_stamp))
        return results

    async def list_records(
        self, kind: str, *, labels: Collection[str] | None = None, after: str = ""
    ) -> AsyncIterator[Record]:
        """The records of a kind behind a key, ascending, paged; with `labels`, only those that carry one of them.

        What exists during the whole listing appears exactly once, whatever others write meanwhile.
        """
        while page := await self._list(kind, after, PAGE, labels):
            for record in page:
                yield record
            after = page[-1].key

    async def list_keys(self, kind: str, labels: Collection[str]) -> list[str]:
        """The keys of all records that carry one of `labels`, ascending."""
        return await self._list_keys(kind, labels) if labels else []

    async def list_open(self, kind: str) -> list[OpenKey]:
        """All open records of a kind with their labels, by ascending key. A hint where the index lags."""
        return await self._list_open(kind)

    async def list_due(self, kind: str, now: datetime, limit: int | None, after: DueKey | None = None) -> list[DueKey]:
        """Up to `limit` records due at `now`, or all, the longest due first, beginning behind `after`."""
        return await self._list_due(kind, now, limit, after)

    async def list_due_together(self, kind: str, now: datetime, limit: int, asker: str) -> list[str]:
        """Keys of up to `limit` due records that are cheap to write together, for one of many askers.

        Where all records are equally near, these are the longest due. Where a backend keeps records in parts, each
        asker is led to a part of its own, so that askers stay out of each other's way.
        """
        del asker
        return [due.key for due in await self.list_due(kind, now, limit)]

    def in_parts(self, kind: str, keys: Collection[str]) -> list[str]:
        """The keys in an order in which neighbours are cheap to write together."""
        del kind
        return list(keys)

    async def list_kinds(self) -> list[str]:
        """Every kind that has a record, ascending. May cost what the whole store costs to read."""
        return await self._list_kinds()

    async def count_labels(self, kind: str) -> dict[str, int]:
        """How many records of the kind carry each label."""
        return await self._count_labels(kind)

    @abstractmethod
    async def _read(self, kind: str, keys: Collection[str]) -> dict[str, Record]: ...

    @abstractmethod
    async def _write(self, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]: ...

    @abstractmethod
    async def _list(self, kind: str, after: str, limit: int, labels: Collection[str] | None) -> list[Record]: ...

    @abstractmethod
    async def _list_keys(self, kind: str, labels: Collection[str]) -> list[str]: ...

    @abstractmethod
    async def _list_open(self, kind: str) -> list[OpenKey]: ...

    @abstractmethod
    async def _list_due(self, kind: str, now: datetime, limit: int | None, after: DueKey | None) -> list[DueKey]: ...

    @abstractmethod
    async def _list_kinds(self) -> list[str]: ...

    @abstractmethod
    async def _count_labels(self, kind: str) -> dict[str, int]: ...

    @abstractmethod
    async def close(self) -> None:
        """Give back what the backend holds. Using it afterwards is an error."""
