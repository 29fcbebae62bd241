"""Records as they were encoded: one that is not is told by its name, for a person to mend."""

import logging
from typing import TypeVar

import msgspec

from resources.records.backend import BackendCorruptError
from resources.records.record import Record

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_told: set[tuple[str, str, str, str]] = set()


def decoded(uri: str, kind: str, record: Record, as_type: type[T], remedy: str = "Restore or remove it.") -> T:
    """The value of a record.

    Args:
        uri: the state store's.
        kind: the record's kind.
        record: as it was read.
        as_type: what its value is an encoding of.
        remedy: what a person is told to do where it is not.

    Raises:
        BackendCorruptError: it is not.
    """
    try:
        return msgspec.json.decode(record.value, type=as_type)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackendCorruptError(uri, f"{kind} '{record.key}' cannot be read: {error}. {remedy}") from error


def readable(uri: str, kind: str, record: Record, as_type: type[T], remedy: str) -> T | None:
    """The value of a record, for whoever goes on without it: None where it is damaged.

    A warning names it, once a process: workers and jobs are read again and again.
    """
    try:
        return decoded(uri, kind, record, as_type, remedy)
    except BackendCorruptError as error:
        damage = (uri, kind, record.key, record.stamp.write_id)
        if damage not in _told:
            _told.add(damage)
            _logger.warning("%s", error)
        return None
