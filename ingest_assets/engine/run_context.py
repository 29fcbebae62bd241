"""What the parts of one run share: who works, on what, and with what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingest_assets.engine.build_stage import BuildStage
from ingest_assets.engine.document_report import DocumentReport, report_of
from ingest_assets.engine.extraction_stage import ExtractionStage
from ingest_assets.engine.progress import Progress
from ingest_assets.engine.selection import Selection
from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.document_state.document_state_store import Change, DocumentStateStore
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import DocStatus
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.workers import Worker


@dataclass(frozen=True)
class RunContext:
    """One worker's run.

    Attributes:
        worker: who claims the documents.
        selection: what of them the run may do.
        state: their records.
        artifacts: what extraction makes of them.
        journal: the answers of models that were paid for.
        extraction: the stage of the first phase.
        builds: the stages of the second, one for each configured store, by slug.
        retry_policy: when what failed is tried again.
        progress: told how the work goes on.
    """

    worker: Worker
    selection: Selection
    state: DocumentStateStore
    artifacts: ArtifactStore
    journal: PaidResultJournal
    extraction: ExtractionStage
    builds: Mapping[str, BuildStage]
    retry_policy: RetryPolicy
    progress: Progress

    async def publish(self, changes: Sequence[Change]) -> list[DocStatus | None]:
        """Write records; for each as it is stored now, or None if it is in another worker's hands by now."""
        return await self.state.set_many(changes) if changes else []

    def needs_write(self, doc: DocStatus, slug: str) -> bool:
        """Whether a store must be touched for the document to stand in it as this run wants it to."""
        return self.builds[slug].needs_write(doc, renew=self.selection.renew_stores)

    def report(self, doc: DocStatus, outcome: Outcome) -> DocumentReport:
        """The report of a document whose run ended in `outcome` for it."""
        return report_of(doc, outcome, self.worker.run_id)
