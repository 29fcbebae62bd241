"""How a record lies in the table, and how it is read back.

| attribute | type | what |
|---|---|---|
| `bucket` | S | partition key: the kind, `#` and two digits that come of the key |
| `key` | S | sort key |
| `value`, `version`, `write_id`, `label` | B, N, S, S | the record |
| `format` | N | 1; a larger one is a later program's |
| `due` | S | only of a due record: its time, then its key, so that text sorts as (time, key) does |
| `open_bucket` | S | only of an open record: the bucket once more |

A kind is spread over 16 buckets: a partition takes 1,000 writes a second, and a bucket is never more than one at first.
"""

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from resources.records.record import DueKey, Record, Stamp, Write

BUCKETS = 16
FORMAT = 1
# DynamoDB's own limits: of an item, names of attributes included; of a sort key; of a partition key.
MOST_BYTES = 400 * 1024
_LONGEST_SORT_KEY = 1024
_LONGEST_PARTITION_KEY = 2048

_TIME = len("2026-01-02T03:04:05.678901Z")
LONGEST_KEY = _LONGEST_SORT_KEY - _TIME  # any record may be due one day
_BUCKET_MARK = len("#00")
LONGEST_KIND = _LONGEST_PARTITION_KEY - _BUCKET_MARK

Item = dict[str, dict[str, Any]]


class DamagedItemError(ValueError):
    """An item is not what this version writes; the message names its record."""


def buckets_of(kind: str) -> list[str]:
    """All buckets of a kind."""
    return [f"{kind}#{number:02d}" for number in range(BUCKETS)]


def kind_of(bucket: str) -> str:
    """The kind whose bucket this is."""
    return bucket[:-_BUCKET_MARK]


def primary_key(kind: str, key: str) -> Item:
    """Where the record of this key lies."""
    return {"bucket": {"S": f"{kind}#{zlib.crc32(key.encode()) % BUCKETS:02d}"}, "key": {"S": key}}


def is_possible(key: str) -> bool:
    """Whether a record can have this key here."""
    return 0 < len(key.encode()) <= LONGEST_KEY


def too_large(kind: str, key: str, item: Item) -> str:
    """Why DynamoDB cannot hold the item; "" if it can."""
    if len(kind.encode()) > LONGEST_KIND:
        return f"is of a kind longer than {LONGEST_KIND} bytes."
    if not is_possible(key):
        return f"has a key longer than {LONGEST_KEY} bytes, which is what DynamoDB can sort by."
    size = sum(len(name) + _size(*attribute.items()) for name, attribute in item.items())
    if size > MOST_BYTES:
        return f"is of {size} bytes; an item of DynamoDB holds {MOST_BYTES}."
    return ""


def item_of(kind: str, write: Write, stamp: Stamp) -> Item:
    """The item that a write of a value makes."""
    where = primary_key(kind, write.key)
    item: Item = where | {
        "value": {"B": write.value},
        "version": {"N": str(stamp.version)},
        "write_id": {"S": stamp.write_id},
        "label": {"S": write.label},
        "format": {"N": str(FORMAT)},
    }
    if write.due_at is not None:
        item["due"] = {"S": due_text(write.due_at, write.key)}
    if write.open:
        item["open_bucket"] = where["bucket"]
    return item


def record_of(item: Item) -> Record:
    """The record an item holds.

    Raises:
        DamagedItemError: see there.
    """
    key = text_of(item, "key")
    return Record(
        key=key,
        value=_attribute(item, "value", "B"),
        stamp=Stamp(_number_of(item, "version"), text_of(item, "write_id")),
        due_at=due_key(item).due_at if "due" in item else None,
        label=label_of(item),
        open="open_bucket" in item,
    )


def label_of(item: Item) -> str:
    """The label of an item that was read whole, or with its label and format.

    Raises:
        DamagedItemError: see there.
    """
    found = _number_of(item, "format")
    if found > FORMAT:
        raise DamagedItemError(
            f"{_name(item)} is of format {found}; this version reads up to {FORMAT}. Upgrade ingest-assets."
        )
    return text_of(item, "label")


def due_key(item: Item) -> DueKey:
    """When an item is due, as its `due` says.

    Raises:
        DamagedItemError: see there.
    """
    due = text_of(item, "due")
    try:
        return DueKey(datetime.fromisoformat(due[: _TIME - 1]).replace(tzinfo=UTC), due[_TIME:])
    except ValueError as error:
        raise DamagedItemError(f"{_name(item)}: its attribute 'due' begins with no time.") from error


def due_text(moment: datetime, key: str) -> str:
    """A text that sorts as (moment, key) does: the time is of fixed width, from year 1 on."""
    return f"{_time(moment)}Z{key}"


def end_of_due(moment: datetime) -> str:
    """Above every text of this moment and below those of later ones."""
    return f"{_time(moment)}{chr(ord('Z') + 1)}"


def text_of(item: Item, name: str) -> str:
    """A text of an item.

    Raises:
        DamagedItemError: see there.
    """
    return str(_attribute(item, name, "S"))


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _number_of(item: Item, name: str) -> int:
    try:
        return int(_attribute(item, name, "N"))
    except ValueError as error:
        if isinstance(error, DamagedItemError):
            raise
        raise DamagedItemError(f"{_name(item)}: its attribute '{name}' is no whole number.") from error


def _attribute(item: Item, name: str, kind: str) -> Any:
    try:
        return item[name][kind]
    except KeyError as error:
        raise DamagedItemError(f"{_name(item)}: its attribute '{name}' is missing or not of type {kind}.") from error


def _name(item: Mapping[str, dict[str, Any]]) -> str:
    return f"{kind_of(item['bucket']['S'])} '{item['key']['S']}'"


def _size(attribute: tuple[str, Any]) -> int:
    """Bytes as DynamoDB counts them; of a number at most one for two digits, and two."""
    kind, value = attribute
    if kind == "N":
        return len(value) // 2 + 2
    return len(value.encode() if kind == "S" else value)
