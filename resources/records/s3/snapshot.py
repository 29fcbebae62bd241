"""All shards of a kind at one moment, and the questions a backend is asked about them."""

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import islice

from resources.records.microseconds import from_micros, to_micros
from resources.records.record import DueKey, OpenKey, Record
from resources.records.s3.line import Line
from resources.records.s3.shard import Shard


class Snapshot:
    """Answers in the order of keys, or of due times, over all shards."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards

    def page(self, after: str, limit: int, labels: Collection[str] | None) -> list[Record]:
        """Up to `limit` records behind a key, of some labels or of all."""
        runs = [_lines_behind(shard, after, labels) for shard in self._shards]
        return [line.record() for line in islice(heapq.merge(*runs, key=lambda line: line.key), limit)]

    def keys(self, labels: Collection[str]) -> list[str]:
        """All keys of some labels."""
        return sorted(line.key for shard in self._shards for line in shard.lines.values() if line.label in labels)

    def open(self) -> list[OpenKey]:
        """All open records."""
        return list(heapq.merge(*(shard.open for shard in self._shards), key=lambda found: found.key))

    def labels(self) -> dict[str, int]:
        """How many records carry each label."""
        total: Counter[str] = Counter()
        for shard in self._shards:
            total.update(shard.labels)
        return dict(total)

    def due(self, now: datetime, limit: int | None, after: DueKey | None) -> list[DueKey]:
        """Up to `limit` records that are due, or all, behind a cursor."""
        first = (to_micros(after.due_at), after.key) if after else None
        runs = [due_by(shard, now, first) for shard in self._shards]
        return [DueKey(from_micros(micros), key) for micros, key in islice(heapq.merge(*runs), limit)]


def due_by(shard: Shard, now: datetime, first: tuple[int, str] | None = None) -> list[tuple[int, str]]:
    """What is due in a shard, the longest due first; with `first`, only what comes behind it."""
    start = 0 if first is None else bisect_right(shard.due, first)
    return shard.due[start : bisect_right(shard.due, (to_micros(now) + 1,))]


def _lines_behind(shard: Shard, after: str, labels: Collection[str] | None) -> Iterator[Line]:
    for key in islice(shard.keys, bisect_right(shard.keys, after), None):
        line = shard.lines[key]
        if labels is None or line.label in labels:
            yield line
