"""What a record is: a value under (kind, key), a stamp that every change renews, and three indexed hints."""

import secrets
from datetime import datetime

import msgspec

_SEPARATOR = "."  # not in the alphabet of an id

_REMEMBERED = 4


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """Which state of a record somebody saw.

    `write_id` begins with an id that is fresh for each call that writes, so A-B-A cannot pass for A, and goes on with
    those of the few writes before, so that a writer whose reply was lost finds its own write although others have
    built on it.
    """

    version: int
    write_id: str

    @classmethod
    def after(cls, seen: "Stamp | None", fresh: str) -> "Stamp":
        """The stamp of a write to a record seen in this state; None: to one that is absent."""
        if seen is None:
            return cls(1, fresh)
        return cls(seen.version + 1, _SEPARATOR.join([fresh, *seen.write_id.split(_SEPARATOR)[: _REMEMBERED - 1]]))

    def includes(self, earlier: "Stamp") -> bool:
        """Whether this state is that of an earlier write, or was made from it by one of the next few."""
        return earlier.write_id.partition(_SEPARATOR)[0] in self.write_id.split(_SEPARATOR)


def fresh_write_id() -> str:
    """An id no write has had. A call writes a record once at most, so that all its writes may share one."""
    return secrets.token_urlsafe(8)


class Record(msgspec.Struct, frozen=True, gc=False):
    """A stored record."""

    key: str
    value: bytes
    stamp: Stamp
    due_at: datetime | None = None
    label: str = ""
    open: bool = False


class Write(msgspec.Struct, frozen=True, gc=False):
    """One conditional change.

    Attributes:
        key: which record of the kind.
        value: the new value, or None to remove the record.
        expected: the stamp the record must have now; None: it must be absent.
        due_at: when the record wants attention; None keeps it out of the index of due records.
        label: a short text that records of a kind are counted and selected by.
        open: whether something is still to become of the record. Open records are listed at a cost that does not grow
            with the closed ones.
    """

    key: str
    value: bytes | None
    expected: Stamp | None
    due_at: datetime | None = None
    label: str = ""
    open: bool = False


class WriteResult(msgspec.Struct, frozen=True, gc=False):
    """What became of one write.

    `stamp` is the record's stamp now: the new one if `written` (None after a removal), else the one that stood in the
    way (None: absent).
    """

    key: str
    written: bool
    stamp: Stamp | None


class OpenKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """An open record and the label it carries."""

    key: str
    label: str


class DueKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """A record that wants attention; ordered by time, then key, which is also the cursor of a listing."""

    due_at: datetime
    key: str
