"""Which of many slow cases are run each time, and which only when asked for."""

import os
from collections.abc import Sequence
from itertools import cycle, product
from typing import TypeVar

T = TypeVar("T")


def full_size(*, small: T, full: T) -> T:
    """A small case; with EVERY_CASE set, the full one."""
    return full if os.environ.get("EVERY_CASE") else small


def sampled(kinds: Sequence[str], cases: Sequence[T], one_in: int = 2) -> list[tuple[str, T]]:
    """One in so many cases, the kinds of server in turn; with EVERY_CASE set, each case on each kind."""
    if os.environ.get("EVERY_CASE"):
        return list(product(kinds, cases))
    return list(zip(cycle(kinds), cases[::one_in], strict=False))
