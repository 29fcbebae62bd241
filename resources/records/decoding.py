"""Records as they were encoded: one that is not is told by its name, for a person to mend."""

from typing import TypeVar

import msgspec

from resources.records.backend import BackendCorruptError
from resources.records.record import Record

T = TypeVar("T")


def decoded(uri: str, kind: str, record: Record, as_type: type[T]) -> T:
    """The value of a record.

    Args:
        uri: the state store's.
        kind: the record's kind.
        record: as it was read.
        as_type: what its value is an encoding of.

    Raises:
        BackendCorruptError: it is not.
    """
    try:
        return msgspec.json.decode(record.value, type=as_type)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackendCorruptError(
            uri, f"{kind} '{record.key}' cannot be read: {error}. Restore or remove it."
        ) from error
