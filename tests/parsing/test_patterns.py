"""No regular expression of the parsers takes long over a text that repeats itself: documents choose what they see."""

import importlib
import pkgutil
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import pytest

from ingest_assets import parsing

from .test_formats import parsed

# Milliseconds each, unless the ways to match grow with every repetition; then no time would be enough.
_PATIENCE = 5.0
_BEGINNINGS = ["", "---\ntitle:", "A: b\n", ":a:\n", ".. a", "# "]
_REPEATED = ["    a\n", "\n    a", "\n\n    a", "A: b\n    c\n", ":a: b\n", "\t", "a ", "<a ", "[a]", "= ", "`", "\n"]
_ENDS = ["", "\n!"]


def _patterns() -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    for module in pkgutil.walk_packages(parsing.__path__, f"{parsing.__name__}."):
        if not module.name.endswith("__main__"):
            named = vars(importlib.import_module(module.name)).items()
            for name, value in named:
                if isinstance(value, re.Pattern):
                    yield pytest.param(value, id=f"{module.name.removeprefix(parsing.__name__)}.{name}"[1:])  # type: ignore[misc]


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def expired(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("pattern", _patterns())
def test_repetition_costs_little(pattern: re.Pattern[str] | re.Pattern[bytes]) -> None:
    """Whether it matches or not: a pattern that can match one line in several ways has as many more for each line."""
    for beginning, repeated, end in product(_BEGINNINGS, _REPEATED, _ENDS):
        text = f"{beginning}{repeated * 60}{end}"
        for ask in (pattern.match, pattern.search, pattern.fullmatch):
            with _within(_PATIENCE):
                ask(text.encode() if isinstance(pattern.pattern, bytes) else text)  # type: ignore[arg-type]


def test_fields_that_go_on_for_many_lines() -> None:
    """They are ordinary, with or without a title among them."""
    field = ":Author: somebody\n" + "    and somebody else\n" * 40
    with _within(_PATIENCE):
        assert parsed("x.rst", f"{field}\nSome words.\n").title == "x"
        assert parsed("x.rst", f"{field}:Title: A name\n\nSome words.\n").title == "A name"
