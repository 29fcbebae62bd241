"""Many things, a group at a time: what is written and read together."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

GROUP = 2_000

T = TypeVar("T")


def in_groups(items: Iterable[T]) -> Iterator[list[T]]:
    """The items in lists of `GROUP`; the last may be shorter."""
    remaining = iter(items)
    while group := list(islice(remaining, GROUP)):
        yield group
