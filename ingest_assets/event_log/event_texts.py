"""A materialization's stored JSON, spliced from one example of its shape that Dagster itself serialised.

Building an event and serialising it costs Dagster 0.17 ms, and nearly all of its text is the same for every document.
So an example of each shape is serialised once, with a mark at each place that varies, and an event is that text with
its own values at the marks: the same bytes in 0.01 ms. `event_rows` compares one with Dagster's in every batch.
"""

import functools
import logging
import math
import re
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, NamedTuple

import dagster as dg

from ingest_assets.event_log.event_entries import PartitionMaterialized, RunStep, materialized_entry

_logger = logging.getLogger(__name__)


class Shape(NamedTuple):
    """What events with one template have in common.

    Attributes:
        asset_key: of the event.
        has_code_version: whether it has one.
        tags: the names of further tags. Dagster refuses some values, so only plain ones are spliced.
        metadata: the labels with the types of their values, or with the value where that is True or False: a word too
            common to be found in a text.
    """

    asset_key: dg.AssetKey
    has_code_version: bool
    tags: tuple[str, ...]
    metadata: tuple[tuple[str, type | bool], ...]


# As json.dumps, which Dagster uses, writes them. Exact types only: Dagster may treat a subclass in another way.
_WRITERS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: int.__repr__,
    float: float.__repr__,  # but for NaN and the infinities
    dg.UrlMetadataValue: lambda value: encode_basestring_ascii(value.url),
}


_PLAIN_TAG = re.compile(r"[A-Za-z0-9_.-]{1,63}")


class _Marks:
    """Values that appear in no event of ours, each another one; a text that holds one twice is not cut."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def next_tag(self) -> str:
        """A mark that is a tag's value."""
        mark = f"ingest-mark-{len(self.written)}-of-a-tag"
        self.written.append(encode_basestring_ascii(mark))
        return mark

    def next(self, kind: type) -> Any:
        """A mark of a type."""
        place = len(self.written)
        text = f"\0ingest mark {place}\0"
        mark: dict[type, Any] = {
            str: text,
            int: 7_000_000_000_000_000 + place,
            float: 800_000_000_000.5 + place,
            dg.UrlMetadataValue: dg.MetadataValue.url(text),
        }
        self.written.append(_WRITERS[kind](mark[kind]))
        return mark[kind]


class _Template(NamedTuple):
    """The text of a shape as a %-pattern, and the order in which the pattern takes the values."""

    pattern: str
    in_order: Callable[[list[str]], tuple[str, ...]]


def spliced(step: RunStep, event: PartitionMaterialized, timestamp: float) -> tuple[Shape, str] | None:
    """The event's shape, and the text `serialize_value` would give; None where only Dagster can tell."""
    code_version = event.code_version
    if not (type(event.partition) is type(event.data_version) is str and event.partition):
        return None
    if code_version is not None and type(code_version) is not str:
        return None
    if not all(type(tag) is str and _PLAIN_TAG.fullmatch(tag) for tag in event.tags.values()):
        return None
    kinds: list[tuple[str, type | bool]] = []
    values = [
        encode_basestring_ascii(event.partition),
        float.__repr__(timestamp),
        encode_basestring_ascii(event.data_version),
    ]
    if code_version is not None:
        values.append(encode_basestring_ascii(code_version))
    values += map(encode_basestring_ascii, event.tags.values())
    value: Any
    for label, value in event.metadata.items():
        kind: type = type(value)
        write = _WRITERS.get(kind)
        if write is not None:
            values.append(write(value))
        if (write is None and kind is not bool) or (kind is float and not math.isfinite(value)):
            return None
        kinds.append((label, kind if write else value))
    shape = Shape(event.asset_key, code_version is not None, tuple(event.tags), tuple(kinds))
    template = _template_of(step, shape)
    return None if template is None else (shape, template.pattern % template.in_order(values))


@functools.lru_cache(maxsize=256)
def _template_of(step: RunStep, shape: Shape) -> _Template | None:
    """Make a shape's template, in 0.3 ms; None if a mark is not exactly once in the example's text."""
    marks = _Marks()
    partition, timestamp, data_version = (marks.next(kind) for kind in (str, float, str))
    code_version = marks.next(str) if shape.has_code_version else None
    tags = {name: marks.next_tag() for name in shape.tags}
    example = PartitionMaterialized(
        asset_key=shape.asset_key,
        partition=partition,
        data_version=data_version,
        code_version=code_version,
        metadata={label: marks.next(kind) if isinstance(kind, type) else kind for label, kind in shape.metadata},
        tags=tags,
    )
    text = dg.serialize_value(materialized_entry(step, example, timestamp))
    found = {text.find(mark): place for place, mark in enumerate(marks.written)}
    if any(text.count(mark) != 1 for mark in marks.written):
        _logger.warning("Events of %s cannot be spliced: slower.", shape.asset_key.to_user_string())
        return None
    pattern = text.replace("%", "%%")
    for mark in marks.written:
        pattern = pattern.replace(mark, "%s")
    return _Template(pattern, itemgetter(*(found[at] for at in sorted(found))))
