"""`ingest gc`: settles what dead workers left, so that nobody is waited for in vain, then collects."""

import asyncio
from collections.abc import Callable

from ingest_assets.requests.request import Request
from ingest_assets.upkeep.collecting import Collected, collect

_POLL_SECONDS = 2.0


class Collecting(Request):
    """Removes artifacts nobody refers to."""

    async def collect(self, advance: Callable[[int], None], *, dry_run: bool, wait: bool) -> Collected:
        """One collection; with `wait`, until those that are at work have let go of what they held when it began."""
        components = self._components
        while True:
            if not dry_run:
                await self._recover()
            done = await collect(components.state, components.artifacts, components.backend, advance, dry_run=dry_run)
            if not (wait and done.n_workers):
                return done
            await asyncio.sleep(_POLL_SECONDS)
