"""Items by their keys: read a hundred at once, written one by one on their conditions. All of it blocks."""

import time
from collections.abc import Sequence
from typing import Any

from resources.records.backend import BackendUnavailableError
from resources.records.dynamodb.calls import TableCalls, pauses
from resources.records.dynamodb.item import Item, kind_of, primary_key
from resources.records.record import Stamp

KEYS_A_READ = 100

_ABSENT = {"ConditionExpression": "attribute_not_exists(#bucket)", "ExpressionAttributeNames": {"#bucket": "bucket"}}
_REFUSED = "ConditionalCheckFailedException"


def get_items(calls: TableCalls, keys: Sequence[Item]) -> list[Item]:
    """The items that exist among up to a hundred, consistently.

    A busy DynamoDB answers a part and is asked for the rest, for some seconds after the last part that came.

    Raises:
        BackendUnavailableError: no more parts came.
    """
    about = _named(keys[0]) + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")
    found: list[Item] = []
    remaining = list(keys)
    tries = pauses()
    while remaining:
        asked = {calls.table: {"Keys": remaining, "ConsistentRead": True}}
        answer = calls.ask("batch_get_item", about, RequestItems=asked)
        found += answer["Responses"].get(calls.table, [])
        left = answer.get("UnprocessedKeys", {}).get(calls.table, {}).get("Keys", [])
        if len(left) < len(remaining):
            tries = pauses()
        elif (pause := next(tries, None)) is None:
            raise BackendUnavailableError(
                calls.uri, f"{about}: it is too busy to be read. Trying again later can help."
            )
        else:
            time.sleep(pause)
        remaining = left
    return found


def put_item(calls: TableCalls, item: Item, expected: Stamp | None) -> bool:
    """Put an item in the place of the one with this stamp, or where none is; False if it is refused."""
    condition = _ABSENT if expected is None else _is(expected)
    answer = calls.call("put_item", _named(item), (_REFUSED,), TableName=calls.table, Item=item, **condition)
    return answer is not None


def delete_item(calls: TableCalls, kind: str, key: str, expected: Stamp) -> bool:
    """Remove the item with this stamp; False if it is refused."""
    where = primary_key(kind, key)
    answer = calls.call("delete_item", _named(where), (_REFUSED,), TableName=calls.table, Key=where, **_is(expected))
    return answer is not None


def _is(stamp: Stamp) -> dict[str, Any]:
    return {
        "ConditionExpression": "#version = :version AND #write_id = :write_id",
        "ExpressionAttributeNames": {"#version": "version", "#write_id": "write_id"},
        "ExpressionAttributeValues": {":version": {"N": str(stamp.version)}, ":write_id": {"S": stamp.write_id}},
    }


def _named(item: Item) -> str:
    return f"{kind_of(item['bucket']['S'])} '{item['key']['S']}'"
