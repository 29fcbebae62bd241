"""`ingest gc`: settles what dead workers left, so that nobody is waited for in vain, then removes and collects."""

import asyncio
from collections.abc import Callable

from ingest_assets.requests.request import Request
from ingest_assets.upkeep.collecting import Collected, collect, remove_old_jobs
from ingest_assets.upkeep.damaged_jobs import remove_damaged_jobs
from resources.clock import utc_now

_POLL_SECONDS = 2.0


class Collecting(Request):
    """Removes old jobs, and artifacts nobody refers to."""

    async def collect(self, advance: Callable[[int], None], *, dry_run: bool, wait: bool) -> Collected:
        """One collection; with `wait`, until those that are at work have let go of what they held when it began."""
        components = self._components
        old = utc_now() - components.settings.keep_jobs
        n_jobs = 0
        while True:
            if not dry_run:
                await self._recover()
            n_jobs += await remove_old_jobs(components.jobs, old, dry_run=dry_run)
            n_jobs += await remove_damaged_jobs(
                components.jobs, components.backend, utc_now(), components.settings.keep_jobs, dry_run=dry_run
            )
            done = await collect(components.state, components.artifacts, components.backend, advance, dry_run=dry_run)
            if not (wait and done.n_workers):
                done.n_jobs = n_jobs
                return done
            await asyncio.sleep(_POLL_SECONDS)
