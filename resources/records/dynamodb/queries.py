"""Queries of one bucket, of the table or one of its indexes; and scans. All of them block."""

from collections.abc import Collection, Iterator
from typing import Any

from resources.records.dynamodb.buckets import Page, Section
from resources.records.dynamodb.calls import TableCalls
from resources.records.dynamodb.item import BUCKETS, FORMAT, Item, kind_of

_MOST_OPERANDS = 100  # of IN
_RANGES = {
    (False, False): "",
    (True, False): " AND #sort > :after",
    (False, True): " AND #sort < :end",
    (True, True): " AND #sort BETWEEN :after AND :end",
}


class Query:
    """What is asked of each bucket.

    Args:
        calls: the table's.
        index: "" asks the table, consistently. An index answers with what it knew a moment ago.
        attributes: what of the items is wanted; (): all there is.
        labels: only items that carry one of these. More than a request can name are not told apart here: look again.
    """

    def __init__(
        self,
        calls: TableCalls,
        index: str = "",
        attributes: Collection[str] = (),
        labels: Collection[str] | None = None,
    ) -> None:
        self._calls = calls
        self._sort = "due" if index == "due" else "key"
        self._names = {"#partition": "open_bucket" if index == "open" else "bucket"}
        self._values: dict[str, dict[str, str]] = {}
        self._parameters: dict[str, Any] = {"IndexName": index} if index else {"ConsistentRead": True}
        if attributes:
            self._names |= {f"#{name}": name for name in attributes}
            self._parameters["ProjectionExpression"] = ", ".join(f"#{name}" for name in attributes)
        if labels is not None and len(labels) <= _MOST_OPERANDS:
            self._names |= {"#label": "label", "#format": "format"}
            self._values = {f":label{number}": {"S": label} for number, label in enumerate(labels)}
            wanted = f"#label IN ({', '.join(self._values)})"
            # What cannot be read comes too, and is told: it must not pass for a record without the label.
            self._values |= {":text": {"S": "S"}, ":format": {"N": str(FORMAT)}}
            damaged = "NOT attribute_type(#label, :text) OR NOT #format = :format"
            self._parameters["FilterExpression"] = f"{wanted} OR {damaged}"

    def section(self, section: Section, end: str = "") -> Page:
        """The next page of a bucket: items behind `section.after`, and below `end` if one is given."""
        bounds = {":after": section.after, ":end": end}
        range_ = _RANGES[bool(section.after), bool(end)]
        answer = self._ask(section.bucket, range_, bounds, Limit=section.size)
        last = answer.get("LastEvaluatedKey")
        # BETWEEN includes its bounds: `after` was seen before, and at `end` nothing lies.
        items = [item for item in answer["Items"] if item[self._sort]["S"] != section.after]
        return Page(items, last[self._sort]["S"] if last else None)

    def whole(self, bucket: str) -> Iterator[Item]:
        """All items of a bucket, a page after the other."""
        start: dict[str, Any] = {}
        while True:
            answer = self._ask(bucket, "", {}, **start)
            yield from answer["Items"]
            if not answer.get("LastEvaluatedKey"):
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _ask(self, bucket: str, range_: str, bounds: dict[str, str], **more: Any) -> dict[str, Any]:
        names = self._names | ({"#sort": self._sort} if range_ else {})
        values = self._values | {name: {"S": text} for name, text in bounds.items() if text}
        return self._calls.ask(
            "query",
            TableName=self._calls.table,
            KeyConditionExpression=f"#partition = :partition{range_}",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values | {":partition": {"S": bucket}},
            **self._parameters,
            **more,
        )


def kinds_in(calls: TableCalls, segment: int) -> set[str]:
    """The kinds in one of sixteen parts of the table. Reads all of it."""
    kinds: set[str] = set()
    start: dict[str, Any] = {}
    while True:
        answer = calls.ask(
            "scan",
            TableName=calls.table,
            Segment=segment,
            TotalSegments=BUCKETS,
            ConsistentRead=True,
            ProjectionExpression="#bucket",
            ExpressionAttributeNames={"#bucket": "bucket"},
            **start,
        )
        kinds |= {kind_of(item["bucket"]["S"]) for item in answer["Items"]}
        if not answer.get("LastEvaluatedKey"):
            return kinds
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
