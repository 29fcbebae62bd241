"""What is done to a batch of claimed documents: they are extracted and built into each store, or removed."""

from ingest_assets.engine.build_phase import BuildPhase
from ingest_assets.engine.claims import Batch, Claims
from ingest_assets.engine.document_report import DocumentReport
from ingest_assets.engine.extraction_phase import ExtractionPhase
from ingest_assets.engine.removal_phase import RemovalPhase
from ingest_assets.engine.run_context import RunContext
from resources.document_state.ingest_jobs import JobStage


class BatchWork:
    """Takes batches through their phases, as one worker."""

    def __init__(self, run: RunContext, claims: Claims) -> None:
        self._extraction = ExtractionPhase(run, claims)
        self._build = BuildPhase(run)
        self._removal = RemovalPhase(run)
        self._progress = run.progress

    @property
    def is_held_back(self) -> bool:
        """Whether a ceiling of spending has held back a batch; the next ones most likely would be as well."""
        return self._extraction.is_held_back

    async def begin(self, batch: Batch) -> None:
        """Start what can go on by itself: reading and parsing."""
        await self._extraction.begin(batch)

    async def finish(self, batch: Batch) -> list[DocumentReport]:
        """Take a begun batch through the rest; every document of it is published when this returns."""
        if batch.extraction is None and (batch.gone or batch.present):
            self._progress.enters(JobStage.PERSISTING)  # there is nothing to extract
        if gone := batch.gone:
            batch.reports += await self._removal.remove(gone)
        if batch.present:
            batch.reports += await self._build.build(await self._extraction.finish(batch))
        return batch.reports
