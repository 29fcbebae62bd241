"""The loop of a run: claims documents in groups, takes each group through its phases, reports.

Three groups are under way at any time: one is being parsed, one written, one reported. Events are sent after the
records they speak of are published; wherever the process dies, `sensors/interrupted_runs` finds all of it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from ingest_assets.engine.batch_work import BatchWork
from ingest_assets.engine.claims import Batch, Claims
from ingest_assets.engine.document_report import DocumentReport, Reporter
from ingest_assets.engine.progress import Milestone
from ingest_assets.engine.run_context import RunContext
from resources.clock import utc_now


class IngestRun:
    """Takes one batch after the other through its phases, as one worker."""

    def __init__(self, run: RunContext, reporter: Reporter, group: int) -> None:
        """Put the parts together; `group` is how many documents are written together, and half of what is claimed."""
        self._run = run
        self._reporter = reporter
        self._group = group
        self._claims = Claims(run)
        self._batches = BatchWork(run, self._claims)

    async def pull(self, limit: int) -> None:
        """Claim due documents and do them, until `limit` are claimed, nothing is due or a ceiling holds them back."""
        await self._work(self._due(limit))

    async def work_on(self, document_ids: Sequence[str]) -> None:
        """Do these documents, group by group, until a ceiling holds them back: what is left stays as it is."""
        await self._work(self._listed(document_ids))

    async def _due(self, limit: int) -> AsyncIterator[Batch]:
        claimed = 0
        # An index that lags behind still lists what this run has done.
        seen: set[str] = set()
        while claimed < limit and not self._batches.is_held_back:
            wanted = min(self._group, limit - claimed)
            # Other workers read the same list: looking further down finds what they have not claimed.
            listed = await self._run.state.list_due_together(
                utc_now(), wanted * 4 + len(seen), self._run.worker.worker_id
            )
            due = [document_id for document_id in listed if document_id not in seen]
            if not due:
                return
            batch = await self._claims.claim(due, wanted)
            seen.update(set(due) - set(batch.left))
            claimed += len(batch.docs) + len(batch.reports)
            yield batch

    async def _listed(self, document_ids: Sequence[str]) -> AsyncIterator[Batch]:
        remaining = self._run.state.in_parts(dict.fromkeys(document_ids))
        while remaining and not self._batches.is_held_back:
            batch = await self._claims.claim(remaining[: self._group], self._group)
            remaining = batch.left + remaining[self._group :]
            yield batch

    async def _work(self, batches: AsyncIterator[Batch]) -> None:
        begun: Batch | None = None
        reporting: asyncio.Task[None] | None = None
        try:
            async for batch in batches:
                await self._batches.begin(batch)
                if begun is not None:
                    reporting = await self._finish(begun, reporting)
                begun = batch
            if begun is not None:
                reporting = await self._finish(begun, reporting)
            if reporting is not None:
                await reporting
        except BaseException:
            if reporting is not None and not reporting.done():
                reporting.cancel()
            await self._claims.release()
            raise

    async def _finish(self, batch: Batch, reporting: asyncio.Task[None] | None) -> asyncio.Task[None]:
        """Publish a batch, and begin to report it once the one before is reported."""
        reports = await self._batches.finish(batch)
        for _ in reports:
            self._run.progress.reaches(Milestone.DONE)
        if reporting is not None:
            await reporting
        return asyncio.create_task(self._report(batch, reports))

    async def _report(self, batch: Batch, reports: Sequence[DocumentReport]) -> None:
        # A worker that was taken over owes nothing any more: the sweep has reported what it had published.
        await self._run.worker.ensure_alive()
        await self._reporter.group_done(reports)
        await self._claims.let_go({doc.document_id for doc in batch.docs})
