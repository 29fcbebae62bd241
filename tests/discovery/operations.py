"""What a discovery does to the world, operation by operation, with something happening before one of them."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Self

from tests.discovery.pile import Pile

EVERY = 0  # as `nth`: before each


class Operations:
    """Counts what is done to the state, to hints and to partitions; before the `nth` of them, `before` is called.

    What happens may be asynchronous only before operations of the state, which are.
    """

    def __init__(self, pile: Pile, nth: int, before: Callable[[], Awaitable[None] | None]) -> None:
        self._nth, self._before = nth, before
        self._places = [(pile.backend, name) for name in ("_read", "_write", "_list", "_count_labels")]
        if not inspect.iscoroutinefunction(before):
            self._places += [(pile.artifacts, "write_hint"), (pile.partitions, "add")]
        self.count = 0

    def __enter__(self) -> Self:
        self._unwatched = [(owner, name, getattr(owner, name)) for owner, name in self._places]
        for owner, name, operation in self._unwatched:
            setattr(owner, name, self._watched(operation))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, operation in self._unwatched:
            setattr(owner, name, operation)

    @property
    def happened(self) -> bool:
        """Whether there was an `nth` operation."""
        return self.count >= self._nth

    def _watched(self, operation: Callable[..., object]) -> Callable[..., object]:
        async def later(*arguments: object) -> object:
            self.count += 1
            if self._nth in (EVERY, self.count) and (waiting := self._before()) is not None:
                await waiting
            return await operation(*arguments)  # type: ignore[misc]

        def at_once(*arguments: object) -> object:
            self.count += 1
            if self._nth in (EVERY, self.count):
                self._before()
            return operation(*arguments)

        return later if inspect.iscoroutinefunction(operation) else at_once
