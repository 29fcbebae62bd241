"""The table: its keys and its two indexes, and how it is made.

Both indexes are sparse, so each costs what is due or open, however large the table is.

| index | keys | holds |
|---|---|---|
| `due` | `bucket`, `due` | nothing but keys |
| `open` | `open_bucket`, `key` | label and format |
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from resources.records.backend import BackendError, BackendUnavailableError
from resources.records.dynamodb.calls import TableCalls

KEYS = {"bucket": "HASH", "key": "RANGE"}
INDEX_KEYS = {"due": {"bucket": "HASH", "due": "RANGE"}, "open": {"open_bucket": "HASH", "key": "RANGE"}}
_PROJECTED: Mapping[str, tuple[str, ...]] = {"due": (), "open": ("label", "format")}
_TYPES = [{"AttributeName": name, "AttributeType": "S"} for name in ("bucket", "key", "due", "open_bucket")]

_MADE_WITHIN = 600.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0


def create_table(calls: TableCalls) -> None:
    """Make the table and the indexes it lacks, and wait until all of it can be used. Blocks; safe to repeat.

    Raises:
        BackendError: there is a table of this name with other keys or an index with other keys, or this is not
            permitted.
        BackendUnavailableError: it takes longer than ten minutes.
    """
    calls.call(
        "create_table",
        tolerated=("ResourceInUseException",),
        TableName=calls.table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=_TYPES,
        KeySchema=_schema(KEYS),
        GlobalSecondaryIndexes=[_index(name) for name in INDEX_KEYS],
    )
    found = _wait(calls, lambda _: True)
    _check_keys(calls, found)
    for name in INDEX_KEYS:
        if name not in _indexes(found):
            # One that another process adds at this moment is in use, and waited for like ours.
            calls.call(
                "update_table",
                tolerated=("ResourceInUseException", "LimitExceededException", "ValidationException"),
                TableName=calls.table,
                AttributeDefinitions=_TYPES,
                GlobalSecondaryIndexUpdates=[{"Create": _index(name)}],
            )
            found = _wait(calls, lambda table, name=name: name in _indexes(table))  # type: ignore[misc]
    _check_indexes(calls, found)


def _wait(calls: TableCalls, is_made: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The table's description, once table and indexes are at rest and `is_made`."""
    deadline = time.monotonic() + _MADE_WITHIN
    pause = _FIRST_PAUSE
    while True:
        answer = calls.call("describe_table", tolerated=("ResourceNotFoundException",), TableName=calls.table)
        # Right after its creation a table is not yet known everywhere.
        table = answer["Table"] if answer else {"TableStatus": "CREATING"}
        states = [table["TableStatus"], *(index["IndexStatus"] for index in _indexes(table).values())]
        if set(states) == {"ACTIVE"} and is_made(table):
            return table
        if time.monotonic() > deadline:
            raise BackendUnavailableError(calls.uri, "the table is still being made. Repeat `ingest state create`.")
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)


def _check_keys(calls: TableCalls, table: dict[str, Any]) -> None:
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    if _keys(table) != KEYS or any(types[name] != "S" for name in KEYS):
        raise BackendError(
            calls.uri,
            f"there is a table of this name with other keys: {_shown(_keys(table))} instead of {_shown(KEYS)}, "
            "both text. It is left as it is; choose another name.",
        )


def _check_indexes(calls: TableCalls, table: dict[str, Any]) -> None:
    for name, keys in INDEX_KEYS.items():
        index = _indexes(table)[name]
        projection = index["Projection"]
        missing = set(_PROJECTED[name]) - set(projection.get("NonKeyAttributes", ()))
        if _keys(index) != keys or (projection["ProjectionType"] != "ALL" and missing):
            holding = f" holding {' and '.join(_PROJECTED[name])}" if _PROJECTED[name] else ""
            raise BackendError(
                calls.uri,
                f"its index '{name}' is not {_shown(keys)}{holding}. Remove it and repeat `ingest state create`.",
            )


def _indexes(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", ())}


def _index(name: str) -> dict[str, Any]:
    projected = _PROJECTED[name]
    projection = (
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(projected)}
        if projected
        else {"ProjectionType": "KEYS_ONLY"}
    )
    return {"IndexName": name, "KeySchema": _schema(INDEX_KEYS[name]), "Projection": projection}


def _schema(keys: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": key_type} for name, key_type in keys.items()]


def _keys(described: dict[str, Any]) -> dict[str, str]:
    return {key["AttributeName"]: key["KeyType"] for key in described["KeySchema"]}


def _shown(keys: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({key_type})" for name, key_type in keys.items())
