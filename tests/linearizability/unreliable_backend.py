"""A real backend behind a bad line: answers are lost, come late, or lie, as measured of clouds."""

import asyncio
import copy
import random
import threading
from collections import defaultdict
from collections.abc import Collection, Sequence

from resources.records.backend import BackendUnavailableError, RecordBackend
from resources.records.record import Record, Stamp, Write

Writes = Sequence[tuple[Write, Stamp]]

LONGEST_PAUSE_SECONDS = 0.001
FAULTS = {
    "none": 76,
    "lost before the write": 4,
    "late": 4,  # no answer, and the write arrives with the client's next one, or never
    "lost after the write": 6,
    "called refused": 10,  # a client library sends again by itself, and the second try meets the first one's write
}


class Overtaking:
    """Keeps others from writing over a write whose answer was lost more often than stamps remember.

    That is the limit of what a stamp promises (record.py): a write is found below the next three.
    """

    REMEMBERED = 3

    def __init__(self) -> None:
        self._room: dict[str, dict[object, int]] = defaultdict(dict)
        self._changed = threading.Condition()

    def begin(self, keys: Collection[str]) -> None:
        """Wait until these may be written."""
        with self._changed:
            self._changed.wait_for(lambda: all(min(self._room[key].values(), default=1) > 0 for key in keys))
            for key in keys:
                self._room[key] = {writer: room - 1 for writer, room in self._room[key].items()}

    def will_look(self, writer: object, keys: Collection[str]) -> None:
        """A writer is about to be told that its write was refused, and to look."""
        with self._changed:
            for key in keys:
                self._room[key][writer] = self.REMEMBERED

    def has_looked(self, writer: object) -> None:
        """It knows now."""
        with self._changed:
            for rooms in self._room.values():
                rooms.pop(writer, None)
            self._changed.notify_all()


class BadLine:
    """One client's way to the records of a backend."""

    def __init__(self, backend: RecordBackend, seed: str, overtaking: Overtaking) -> None:
        self._backend = backend
        self._random = random.Random(seed)
        self._overtaking = overtaking
        self._late: list[tuple[str, Writes]] = []

    async def read(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        """Read a little later."""
        try:
            await self._pause()
            return await self._backend._read(kind, keys)
        finally:
            self._overtaking.has_looked(self)

    async def write(self, kind: str, writes: Writes) -> list[bool]:
        """Write, or not, and tell, or not."""
        fault = self._random.choices(list(FAULTS), list(FAULTS.values()))[0]
        late, self._late = self._late, []
        for late_kind, late_writes in late:
            await self._write(late_kind, late_writes)
        if fault == "late":
            self._late.append((kind, writes))
        if fault in ("late", "lost before the write"):
            raise BackendUnavailableError(self._backend.uri, fault)
        await self._pause()
        done = await (self._write_unheard(kind, writes) if fault == "called refused" else self._write(kind, writes))
        await self._pause()
        if fault == "lost after the write":
            raise BackendUnavailableError(self._backend.uri, fault)
        return done

    async def _write(self, kind: str, writes: Writes) -> list[bool]:
        self._overtaking.begin([write.key for write, _ in writes])
        return await self._backend._write(kind, writes)

    async def _write_unheard(self, kind: str, writes: Writes) -> list[bool]:
        keys = [write.key for write, _ in writes]
        self._overtaking.begin(keys)
        self._overtaking.will_look(self, keys)
        try:
            await self._backend._write(kind, writes)
        except BaseException:
            self._overtaking.has_looked(self)
            raise
        return [False for _ in writes]

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.random() * LONGEST_PAUSE_SECONDS)


def unreliable(backend: RecordBackend, seed: str, overtaking: Overtaking) -> RecordBackend:
    """The same records through a bad line; what is neither reading nor writing of records goes the good way."""
    behind, line = copy.copy(backend), BadLine(backend, seed, overtaking)
    behind._read, behind._write = line.read, line.write
    return behind
