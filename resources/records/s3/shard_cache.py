"""Shards this process has read, for whoever opens the same store next: sensors do so at every tick.

A cached shard is never trusted, only asked about: its ETag goes with the next request for it.
"""

import threading
from collections import OrderedDict

import msgspec

from resources.records.s3.shard import Shard

_MOST_BYTES = 512 * 1024 * 1024  # of text; Python's objects add about as much


class Place(msgspec.Struct, frozen=True):
    """Which shard of which kind of which store."""

    uri: str
    kind: str
    number: int


class Stored(msgspec.Struct, frozen=True):
    """A shard as it was at an ETag; "": there was no object."""

    etag: str
    shard: Shard


class ShardCache:
    """The shards used last, up to a total of text. Safe for threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._stored: OrderedDict[Place, Stored] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: Place) -> Stored | None:
        """What was last seen there."""
        with self._lock:
            if place in self._stored:
                self._stored.move_to_end(place)
            return self._stored.get(place)

    def put(self, place: Place, stored: Stored) -> None:
        """Remember what was seen; what was not used for longest goes."""
        with self._lock:
            before = self._stored.pop(place, None)
            self._bytes += _cost(stored) - (_cost(before) if before else 0)
            self._stored[place] = stored
            while self._bytes > self._most:
                self._bytes -= _cost(self._stored.popitem(last=False)[1])


def _cost(stored: Stored) -> int:
    return stored.shard.size + _FIXED_COST


_FIXED_COST = 1_000  # so that empty shards of many stores do not pile up
SHARDS_OF_THIS_PROCESS = ShardCache(_MOST_BYTES)
