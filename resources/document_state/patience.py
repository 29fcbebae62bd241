"""How a batch waits for money that other batches have reserved: their worst case, of which most comes back.

Nobody is told when a batch is settled, so the ledger is looked at again with growing pauses: a read each time, of one
small record. Meanwhile what the dead have reserved is settled, for nobody else may be there to do it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

import msgspec

from resources.document_state.spend_book import Refusal

_logger = logging.getLogger(__name__)

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0

Attempt = Callable[[], Awaitable[Refusal | None]]


class Patience:
    """Waits for batches under way, up to a limit. Cancelling the task ends it."""

    def __init__(
        self,
        seconds: float,
        sweep: Callable[[], Awaitable[object]],
        sweep_every: float,
        waits: Callable[[], None],
    ) -> None:
        """Nothing is done before somebody has to wait.

        Args:
            seconds: the limit; 0: nobody waits.
            sweep: settles what the dead have reserved.
            sweep_every: seconds between two sweeps; the first is at once.
            waits: told each time that somebody begins to wait.
        """
        self._seconds = seconds
        self._sweep = sweep
        self._sweep_every = sweep_every
        self._waits = waits

    async def outlast(self, attempt: Attempt) -> Refusal | None:
        """Attempt until it succeeds, what is spent forbids it, or the limit is reached; the last refusal, or None."""
        refusal = await attempt()
        if refusal is None or refusal.is_final or not self._seconds:
            return refusal
        self._waits()
        _logger.warning("Waiting up to %.0f s for batches under way. %s", self._seconds, refusal.standing)
        began = swept = time.monotonic()
        await self._sweep()
        pause = _FIRST_PAUSE
        while (refusal := await attempt()) is not None and not refusal.is_final:
            left = began + self._seconds - time.monotonic()
            if left <= 0:
                return msgspec.structs.replace(refusal, waited_seconds=self._seconds)
            # Of random length, so that of many who wait not all ask at once.
            await asyncio.sleep(min(left, random.uniform(pause / 2, pause)))  # noqa: S311 - no secret
            pause = min(_LONGEST_PAUSE, 1.5 * pause)
            if time.monotonic() - swept >= self._sweep_every:
                swept = time.monotonic()
                await self._sweep()
        return refusal
