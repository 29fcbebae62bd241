"""A kind lies in sixteen buckets; here they are read as one sorted list."""

from collections.abc import Awaitable, Callable, Sequence
from math import isqrt
from typing import NamedTuple

from resources.records.dynamodb.item import Item

_WHOLE_PAGE = 10_000  # more than the megabyte holds that is the most an answer has


class Section(NamedTuple):
    """A part of a bucket to read: what lies behind `after`, at most `size` items."""

    bucket: str
    after: str
    size: int


class Page(NamedTuple):
    """What was read of a bucket, and how far: behind `reached` there may be more; None: there is not."""

    items: list[Item]
    reached: str | None


async def first_of_all(
    read: Callable[[Sequence[Section]], Awaitable[list[Page]]],
    buckets: Sequence[str],
    sort: str,
    after: str,
    limit: int | None,
) -> list[Item]:
    """The first `limit` items of all buckets together, or all, sorted by one attribute, beginning behind `after`.

    Each bucket is asked for its share and four standard deviations, so that it is rarely asked twice, and what is read
    in vain stays small.
    """
    size = _WHOLE_PAGE if limit is None else limit // len(buckets) + isqrt(limit) + 1
    reached: dict[str, str | None] = dict.fromkeys(buckets, after)
    found: list[Item] = []
    lagging = list(buckets) if limit is None or limit > 0 else []
    while lagging:
        pages = await read([Section(bucket, reached[bucket] or "", size) for bucket in lagging])
        for bucket, page in zip(lagging, pages, strict=True):
            found += page.items
            reached[bucket] = page.reached
        found.sort(key=lambda item: item[sort]["S"])
        end = found[limit - 1][sort]["S"] if limit is not None and len(found) >= limit else None
        lagging = [bucket for bucket, at in reached.items() if at is not None and (end is None or at < end)]
        size *= 2
    return found if limit is None else found[: max(0, limit)]
