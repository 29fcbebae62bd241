"""One shard of a kind: its records at one moment, as a base and where they differ from it. `objects` keeps them.

So a change of a few records of a large shard costs as much as these few and those that were changed lately.
"""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from resources.records.record import OpenKey, Stamp, Write
from resources.records.s3.line import Line, line_of
from resources.records.s3.packing import Changes, one_more

# A head is put with each change, a base when the head has outgrown both of these. Measured on 1,500 documents, whose
# base has 190 KB, over claim, extraction and build: an eighth and 32 KB cost 3.9 KB a document where 16 of a shard are
# changed together, and 1.2 where 200 are; 16 KB 3.2 and 2.6, half of the base 7.6 and 1.1.
SMALL = 32 * 1024
SHARE = 0.125


def shard_of(key: str, shards: int) -> int:
    """The shard a key falls into: the same for each kind, process and version."""
    return zlib.crc32(key.encode()) % shards


class Base(msgspec.Struct, frozen=True):
    """What a shard was when its base was written.

    Attributes:
        id: which base; "" where a shard has none.
        lines: by ascending key.
        text_bytes: how much text that is.
        packed_bytes: how large the object is.
    """

    id: str
    lines: Mapping[str, Line]
    text_bytes: int
    packed_bytes: int


NO_BASE = Base("", {}, 0, 0)


class Shard:
    """The records of a shard at one moment. Never changed: a change makes another one."""

    def __init__(
        self,
        lines: Mapping[str, Line],
        changes: Changes = (),
        *,
        base: Base = NO_BASE,
        delta: Mapping[str, Line | None] | None = None,
    ) -> None:
        """Take what is there.

        Args:
            lines: all records by ascending key.
            changes: the ids of the last changes.
            base: what they are told apart from.
            delta: where they differ from it; None for a key that it alone has.
        """
        self.lines = lines
        self.changes = changes
        self.base = base
        self.delta = lines if delta is None else delta
        self.delta_bytes = 0  # of text, once it is written or read

    @property
    def size(self) -> int:
        """How much text it is."""
        return self.base.text_bytes + self.delta_bytes

    @property
    def room(self) -> int:
        """How large a head may become before another base is worth it."""
        return max(SMALL, int(self.base.packed_bytes * SHARE))

    @cached_property
    def keys(self) -> list[str]:
        """All keys, ascending."""
        return list(self.lines)

    @cached_property
    def due(self) -> list[tuple[int, str]]:
        """When which record is due, the longest due first."""
        return sorted((line.due, line.key) for line in self.lines.values() if line.due is not None)

    @cached_property
    def open(self) -> list[OpenKey]:
        """Open records, by ascending key."""
        return [OpenKey(line.key, line.label) for line in self.lines.values() if line.open]

    @cached_property
    def labels(self) -> Counter[str]:
        """How many records carry each label."""
        return Counter(line.label for line in self.lines.values())

    def changed(self, writes: Sequence[tuple[Write, Stamp]]) -> tuple["Shard | None", list[bool]]:
        """What becomes of the shard if each write is tried on its own condition, one after the other.

        Returns:
            The new shard, or None if nothing changes; and for each write whether it has what it wants. That it has
            also if it is found to be in the shard already, or removes what is gone.
        """
        lines = dict(self.lines)
        done = [_apply(lines, write, stamp) for write, stamp in writes]
        changed = [write.key for write, _ in writes if lines.get(write.key) is not self.lines.get(write.key)]
        if not changed:
            return None, done
        if any(key not in self.lines for key in changed):
            lines = dict(sorted(lines.items()))
        return Shard(lines, one_more(self.changes), base=self.base, delta=self._delta(lines, changed)), done

    def on(self, base: Base) -> "Shard":
        """The same records, told apart from a base that has them all."""
        return Shard(self.lines, self.changes, base=base, delta={})

    def alone(self) -> "Shard":
        """The same records without a base."""
        return Shard(self.lines, self.changes)

    def _delta(self, lines: Mapping[str, Line], changed: Sequence[str]) -> dict[str, Line | None]:
        delta = dict(self.delta)
        for key in changed:
            if key in lines or key in self.base.lines:
                delta[key] = lines.get(key)
            else:
                delta.pop(key, None)
        return delta


def _apply(lines: dict[str, Line], write: Write, stamp: Stamp) -> bool:
    found = lines.get(write.key)
    current = found.stamp if found else None
    if current is not None and current.includes(stamp):
        return True
    if current != write.expected:
        return write.value is None and current is None
    if write.value is None:
        lines.pop(write.key, None)
    else:
        lines[write.key] = line_of(write, write.value, stamp)
    return True
