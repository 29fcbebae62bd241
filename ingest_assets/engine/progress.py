"""How batches go on, for whoever watches."""

from typing import Protocol

from resources.document_state.ingest_jobs import JobStage


class Progress(Protocol):
    """Told how batches go on."""

    def enters(self, stage: JobStage) -> None:
        """What the work is at. Costs nothing: it may be called for every batch."""

    async def estimated(self, micro_usd: int, refusal: str) -> None:
        """What a batch's calls may cost, and why it was held back, or ""."""
