"""Threads in which calls that block are made, never in an event loop's own."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from resources.aws.client import CONNECTIONS

Thing = TypeVar("Thing")
Result = TypeVar("Result")

# Single calls have threads of their own: a heartbeat never waits behind a load of thousands.
_SINGLE = 4
_BULK = CONNECTIONS - _SINGLE


class CallThreads:
    """As many threads as a client keeps connections. For event loops of many threads at once."""

    def __init__(self) -> None:
        self._single = ThreadPoolExecutor(_SINGLE, "dynamodb")
        self._bulk = ThreadPoolExecutor(_BULK, "dynamodb-bulk")

    async def one(self, do: Callable[[], Result]) -> Result:
        """Do one thing in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._single, do)

    async def each(self, do: Callable[[Thing], Result], things: Sequence[Thing]) -> list[Result]:
        """Do the same with each thing, many at once; the results in their order.

        After an error nothing more is begun, and it is raised when nothing is under way any more: who reads then reads
        what stays.
        """
        if len(things) == 1:
            return [await self.one(lambda: do(things[0]))]
        results: dict[int, Result] = {}
        errors: list[BaseException] = []
        remaining = iter(enumerate(things))  # `next` on it is atomic

        def work() -> None:
            try:
                for number, thing in remaining:
                    results[number] = do(thing)
                    if errors:
                        return
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

        loop = asyncio.get_running_loop()
        try:
            await asyncio.gather(*(loop.run_in_executor(self._bulk, work) for _ in range(min(_BULK, len(things)))))
        except asyncio.CancelledError as error:
            errors.append(error)
            raise
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(things))]

    async def close(self) -> None:
        """Wait for what is under way, and end the threads."""
        for pool in (self._single, self._bulk):
            await asyncio.to_thread(pool.shutdown)
