"""What a record is: a value under (kind, key), a stamp that every change renews, and two indexed hints."""

from datetime import datetime

import msgspec


class Stamp(msgspec.Struct, frozen=True):
    """Which state of a record somebody saw. `write_id` is fresh for each write, so A-B-A cannot pass for A."""

    version: int
    write_id: str


class Record(msgspec.Struct, frozen=True):
    """A stored record."""

    key: str
    value: bytes
    stamp: Stamp
    due_at: datetime | None = None
    label: str = ""


class Write(msgspec.Struct, frozen=True):
    """One conditional change.

    Attributes:
        key: which record of the kind.
        value: the new value, or None to remove the record.
        expected: the stamp the record must have now; None: it must be absent.
        due_at: when the record wants attention; None keeps it out of the index of due records.
        label: a short text that records of a kind are counted and selected by.
    """

    key: str
    value: bytes | None
    expected: Stamp | None
    due_at: datetime | None = None
    label: str = ""


class WriteResult(msgspec.Struct, frozen=True):
    """What became of one write.

    `stamp` is the record's stamp now: the new one if `written` (None after a removal), else the one that stood in the
    way (None: absent).
    """

    key: str
    written: bool
    stamp: Stamp | None


class DueKey(msgspec.Struct, frozen=True, order=True):
    """A record that wants attention; ordered by time, then key, which is also the cursor of a listing."""

    due_at: datetime
    key: str
