"""A process that kills itself at a point of its work.

A point is `before|after:NTH:MODULE:CLASS.METHOD`: the process gets SIGKILL when that method is called for the nth time,
before it begins or when it has returned. Nothing is timed, so each point is hit every time.
"""

import functools
import importlib
import inspect
import itertools
import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple


class Point(NamedTuple):
    """Where a process dies."""

    when: str
    nth: int
    module: str
    method: str

    @classmethod
    def read(cls, text: str) -> "Point":
        """The point a text names."""
        when, nth, module, method = text.split(":")
        return cls(when, int(nth), module, method)

    def __str__(self) -> str:
        return ":".join(map(str, self))

    def plant(self) -> None:
        """Make this process die there."""
        owner_name, name = self.method.split(".")
        owner = getattr(importlib.import_module(self.module), owner_name)
        setattr(owner, name, self._deadly(getattr(owner, name)))

    def _deadly(self, method: Callable[..., Any]) -> Callable[..., Any]:
        calls = itertools.count(1)

        def dies(when: str, number: int) -> None:
            if (when, number) == (self.when, self.nth):
                os.kill(os.getpid(), signal.SIGKILL)

        @functools.wraps(method)
        def blocking(*args: Any, **options: Any) -> Any:
            number = next(calls)
            dies("before", number)
            result = method(*args, **options)
            dies("after", number)
            return result

        @functools.wraps(method)
        async def awaited(*args: Any, **options: Any) -> Any:
            number = next(calls)
            dies("before", number)
            result = await method(*args, **options)
            dies("after", number)
            return result

        return awaited if inspect.iscoroutinefunction(method) else blocking
