"""How many calls are in flight and how fast they follow each other; shared by all calls of one process.

Congestion control as in TCP: a throttled call halves what may be in flight, each answered one gives a little back.
While a provider throttles, nobody asks it; the pause is what it says, else doubles with each throttling in a row.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_MINUTE = 60.0


class Pacer:
    """Lets calls go in the order they came. Belongs to one event loop."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._concurrency = concurrency
        self._allowed = float(concurrency)
        self._seconds_per_request = _MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._seconds_per_token = _MINUTE / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._sleep = sleep
        self._in_flight = 0
        self._gate = asyncio.Lock()
        self._freed = asyncio.Event()
        self._next_at = 0.0
        self._paused_until = 0.0
        self._slowed_at = 0.0
        self._throttled_in_a_row = 0

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[float]:
        """Wait until a call of so many tokens may go, and hold its place meanwhile. Gives the time it began."""
        async with self._gate:  # one decides at a time, and a lock is fair
            while self._in_flight >= int(self._allowed):
                self._freed.clear()
                await self._freed.wait()
            while (seconds := max(self._paused_until, self._next_at) - self._clock()) > 0:
                await self._sleep(seconds)
            began = self._clock()
            self._next_at = began + max(self._seconds_per_request, self._seconds_per_token * tokens)
            self._in_flight += 1
        try:
            yield began
        finally:
            self._in_flight -= 1
            self._freed.set()

    def answered(self) -> None:
        """A call was answered: there may be a little more in flight again."""
        self._throttled_in_a_row = 0
        self._allowed = min(float(self._concurrency), self._allowed + 1 / self._allowed)

    def throttled(self, began: float, retry_after: float | None) -> float:
        """A call that `began` then was throttled. Returns how many seconds nobody asks now."""
        now = self._clock()
        # Calls that were in flight together are told together; they are one throttling, not many.
        if began >= self._slowed_at:
            self._slowed_at = now
            self._allowed = max(1.0, self._allowed / 2)
            self._throttled_in_a_row += 1
        doubled = _FIRST_PAUSE_SECONDS * 2.0 ** (self._throttled_in_a_row - 1)
        # Several processes should not come back in the same moment.
        pause = retry_after or min(doubled, _LONGEST_PAUSE_SECONDS) * random.uniform(0.75, 1.25)  # noqa: S311
        self._paused_until = max(self._paused_until, now + pause)
        return self._paused_until - now
