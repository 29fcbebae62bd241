"""One shard of a kind: its records, and what an object in the bucket makes of them.

An object is a zstd frame of JSON lines by ascending key, and behind it a skippable frame, which readers of zstd pass
over: the ids of the last changes of this object, the newest first. They do two things.

- No two states of an object are ever equal in bytes, so an ETag never comes back. A PUT that was thought lost and
  arrives late finds another ETag than the one it was made for, whatever happened meanwhile; without the ids, a record
  created and removed would leave the very bytes the late PUT waits for, and it would bring the record back.
- A writer whose reply was lost finds the id of its change although others have built on it, and so knows that all of
  the change was committed, removals included.
"""

import secrets
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import zstandard

from resources.records.record import OpenKey, Stamp, Write
from resources.records.s3.line import Line, UnreadableError, decode_lines, encode_lines, line_of

LARGEST = 512 * 1024 * 1024  # of a shard's text; what unpacks to more is refused unread
# Measured on 1,500 documents, 2 MB of text: level 1 gives 212 KB in 1.4 ms, 3 gives 231 KB in 3.3 ms, 9 227 KB in 35.
_LEVEL = 1
_ID_BYTES = 8
_REMEMBERED = 16
_SKIPPABLE = struct.pack("<II", 0x184D2A50, _ID_BYTES * _REMEMBERED)
_TAIL_BYTES = len(_SKIPPABLE) + _ID_BYTES * _REMEMBERED


def shard_of(key: str, shards: int) -> int:
    """The shard a key falls into: the same for each kind, process and version."""
    return zlib.crc32(key.encode()) % shards


class TooLargeError(Exception):
    """A shard would become larger than any reader accepts."""


class Shard:
    """The records of a shard at one moment. Never changed: a change makes another one."""

    def __init__(self, lines: dict[str, Line], changes: tuple[bytes, ...] = (), size: int = 0) -> None:
        """Take lines by ascending key; `size` is their text's."""
        self.lines = lines
        self.changes = changes
        self.size = size

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
        changed = any(lines.get(write.key) is not self.lines.get(write.key) for write, _ in writes)
        if not changed:
            return None, done
        if any(write.key not in self.lines for write, _ in writes):
            lines = dict(sorted(lines.items()))
        return Shard(lines, (secrets.token_bytes(_ID_BYTES), *self.changes)[:_REMEMBERED]), done

    def encode(self) -> bytes:
        """The object.

        Raises:
            TooLargeError: no reader would accept it.
        """
        text = encode_lines(list(self.lines.values()))
        if len(text) > LARGEST:
            raise TooLargeError(f"it would hold {len(text):,} bytes of records; at most {LARGEST:,} fit")
        self.size = len(text)
        packed = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(text)
        return packed + _SKIPPABLE + b"".join(self.changes).ljust(_ID_BYTES * _REMEMBERED, b"\0")

    @classmethod
    def decode(cls, body: bytes, number: int, shards: int) -> "Shard":
        """Read an object whole.

        Raises:
            UnreadableError: something in it is not as we write it.
        """
        packed, changes = _split(body)
        text = _unpack(packed)
        lines: dict[str, Line] = {}
        before = ""
        for at, line in enumerate(decode_lines(text), 1):
            if line.key <= before:
                raise UnreadableError(f"line {at}, record '{line.key}': it does not stand in the order of keys.")
            if shard_of(line.key, shards) != number:
                belongs = shard_of(line.key, shards)
                raise UnreadableError(f"line {at}, record '{line.key}': it belongs into shard {belongs}.")
            lines[line.key] = line
            before = line.key
        return cls(lines, changes, len(text))


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


def _split(body: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """The packed lines, and the ids of changes; none where another program wrote the object."""
    packed, tail = body[:-_TAIL_BYTES], body[-_TAIL_BYTES:]
    if not tail.startswith(_SKIPPABLE):
        return body, ()
    return packed, tuple(_ids(tail[len(_SKIPPABLE) :]))


def _ids(tail: bytes) -> Iterator[bytes]:
    for start in range(0, len(tail), _ID_BYTES):
        found = tail[start : start + _ID_BYTES]
        if any(found):
            yield found


def _unpack(packed: bytes) -> bytes:
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= LARGEST:
            raise UnreadableError(
                f"it says to unpack to {size:,} bytes (-1: it does not say); at most {LARGEST:,} are read."
            )
        return zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise UnreadableError(f"it is not whole: {error}.") from error
