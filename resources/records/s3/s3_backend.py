"""The record backend on a bucket. The package says what lies there, `shard_writer` why no lost reply does harm."""

import asyncio
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar
from weakref import WeakValueDictionary

from resources.aws.location import AwsLocation
from resources.records.backend import PAGE, RecordBackend, RecordTooLargeError, WrongOptionError
from resources.records.record import DueKey, OpenKey, Record, Stamp, Write
from resources.records.s3.bucket import Bucket
from resources.records.s3.layout import MOST_SHARDS, SHARDS
from resources.records.s3.opening import Opening
from resources.records.s3.shard import shard_of
from resources.records.s3.shard_cache import Stored
from resources.records.s3.shard_reader import ShardReader
from resources.records.s3.shard_writer import ShardWriter
from resources.records.s3.snapshot import Snapshot, due_by
from resources.records.s3.threads import Threads

T = TypeVar("T")

LARGEST_VALUE = 16 * 1024 * 1024
_AHEAD = 8  # shards looked at together on the way to one with something due


class S3Backend(RecordBackend):
    """Records in the shards of a prefix.

    A read costs a request a shard, without a body where the shard is unchanged. A write costs one PUT of its shard,
    shared by all writes that wait together. What concerns a whole kind costs one listing and the shards that changed.
    A store that nobody has written reads as empty, and reading it makes nothing.
    """

    def __init__(self, location: AwsLocation) -> None:
        """Nothing is asked of the bucket before it is used."""
        self.location = location
        self.uri = location.uri
        self._bucket = Bucket(location)
        self._threads = Threads()
        self._opening = Opening(self._bucket)
        self._writers_lock = threading.Lock()
        self._writers: WeakValueDictionary[tuple[str, int], ShardWriter] = WeakValueDictionary()

    async def create(self, *, shards: int | None = None) -> None:
        """See RecordBackend. A store has 1 to 256 shards, 64 if nothing is said, and keeps their number.

        Raises:
            BackendError: the endpoint ignores conditions, or by what went wrong.
        """
        if shards is not None and not 1 <= shards <= MOST_SHARDS:
            raise WrongOptionError(f"State store {self.uri} cannot have {shards} shards. Choose 1 to {MOST_SHARDS}.")
        reader = await self._threads.run(self._opening.for_writing, shards or SHARDS)
        if shards not in {None, reader.shards}:
            has = f"has {reader.shards} shards and cannot get {shards}"
            raise WrongOptionError(f"State store {self.uri} {has}. Copy its records into a new store.")

    async def list_records(
        self, kind: str, *, labels: Collection[str] | None = None, after: str = ""
    ) -> AsyncIterator[Record]:
        """See RecordBackend. All pages are of one moment: each of its own would read what changed since the last."""
        snapshot = await self._snapshot(kind)
        while page := await self._threads.run(snapshot.page, after, PAGE, labels):
            for record in page:
                yield record
            after = page[-1].key

    async def list_due_together(self, kind: str, now: datetime, limit: int, asker: str) -> list[str]:
        """See RecordBackend. Shards are gone round from the one the asker's name leads to, until there is enough."""
        reader = await self._for_reading()
        if reader is None:
            return []
        etags = await self._threads.run(reader.etags, kind)
        start = zlib.crc32(asker.encode()) % reader.shards
        numbers = sorted(etags, key=lambda number: (number - start) % reader.shards)
        found: list[str] = []
        for at in range(0, len(numbers), _AHEAD):
            for stored in await self._read_listed(reader, kind, {n: etags[n] for n in numbers[at : at + _AHEAD]}):
                found += [key for _, key in due_by(stored.shard, now)[: limit - len(found)]]
            if len(found) == limit:
                break
        return found

    def in_parts(self, kind: str, keys: Collection[str]) -> list[str]:
        """See RecordBackend."""
        del kind
        shards = self._opening.reader.shards if self._opening.reader else SHARDS
        return sorted(keys, key=lambda key: (shard_of(key, shards), key))

    async def _read(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        reader = await self._for_reading()
        if reader is None:
            return {}
        numbers = {shard_of(key, reader.shards) for key in keys}
        stored = await asyncio.gather(*(self._threads.run(reader.read, kind, number) for number in numbers))
        shards = dict(zip(numbers, stored, strict=True))
        lines = {key: shards[shard_of(key, reader.shards)].shard.lines.get(key) for key in keys}
        return {key: line.record() for key, line in lines.items() if line is not None}

    async def _write(self, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]:
        for write, _ in writes:
            if write.value is not None and len(write.value) > LARGEST_VALUE:
                message = f"has {len(write.value):,} bytes; at most {LARGEST_VALUE:,} fit."
                raise RecordTooLargeError(self.uri, kind, write.key, message)
        reader = self._opening.reader
        if reader is None or not self._opening.is_proven:
            reader = await self._threads.run(self._opening.for_writing, SHARDS)
        parts: dict[int, list[int]] = {}
        for at, (write, _) in enumerate(writes):
            parts.setdefault(shard_of(write.key, reader.shards), []).append(at)
        written = [
            self._writer(reader, kind, number).write([writes[at] for at in part]) for number, part in parts.items()
        ]
        # All are waited for, also after one failed: none shall change anything behind the caller's back.
        answers = await asyncio.gather(*map(asyncio.wrap_future, written), return_exceptions=True)
        done = [False] * len(writes)
        for part, answer in zip(parts.values(), answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            for at, is_done in zip(part, answer, strict=True):
                done[at] = is_done
        return done

    async def _list(self, kind: str, after: str, limit: int, labels: Collection[str] | None) -> list[Record]:
        return await self._ask(kind, lambda snapshot: snapshot.page(after, limit, labels))

    async def _list_keys(self, kind: str, labels: Collection[str]) -> list[str]:
        return await self._ask(kind, lambda snapshot: snapshot.keys(labels))

    async def _list_open(self, kind: str) -> list[OpenKey]:
        return await self._ask(kind, Snapshot.open)

    async def _list_due(self, kind: str, now: datetime, limit: int | None, after: DueKey | None) -> list[DueKey]:
        return await self._ask(kind, lambda snapshot: snapshot.due(now, limit, after))

    async def _list_kinds(self) -> list[str]:
        reader = await self._for_reading()
        if reader is None:
            return []
        kinds = await self._threads.run(reader.kinds)
        return [kind for kind in sorted(kinds) if await self._has_records(reader, kind, kinds[kind])]

    async def _count_labels(self, kind: str) -> dict[str, int]:
        return await self._ask(kind, Snapshot.labels)

    async def close(self) -> None:
        """Wait for what is under way, then give back threads and connections. A later use opens new ones."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.close()
        self._bucket.close()
        self._opening.forget()

    async def _for_reading(self) -> ShardReader | None:
        return self._opening.reader or await self._threads.run(self._opening.for_reading)

    async def _ask(self, kind: str, question: Callable[[Snapshot], T]) -> T:
        """Answer a question about a whole kind; over 100,000 records that takes a while, so not in the loop."""
        return await self._threads.run(question, await self._snapshot(kind))

    async def _snapshot(self, kind: str) -> Snapshot:
        reader = await self._for_reading()
        if reader is None:
            return Snapshot([])
        stored = await self._read_listed(reader, kind, await self._threads.run(reader.etags, kind))
        return Snapshot([each.shard for each in stored])

    async def _read_listed(self, reader: ShardReader, kind: str, etags: dict[int, str]) -> list[Stored]:
        reading = (self._threads.run(reader.read_listed, kind, number, etag) for number, etag in etags.items())
        return await asyncio.gather(*reading)

    async def _has_records(self, reader: ShardReader, kind: str, etags: dict[int, str]) -> bool:
        for number, etag in etags.items():
            if (await self._threads.run(reader.read_listed, kind, number, etag)).shard.lines:
                return True
        return False

    def _writer(self, reader: ShardReader, kind: str, number: int) -> ShardWriter:
        with self._writers_lock:
            writer = self._writers.get((kind, number))
            if writer is None:
                writer = ShardWriter(self._bucket, reader, kind, number, self._threads.submit)
                self._writers[kind, number] = writer
            return writer
