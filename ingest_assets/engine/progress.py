"""How batches go on, for whoever watches."""

from enum import StrEnum
from typing import Protocol

from resources.document_state.ingest_jobs import JobStage


class Milestone(StrEnum):
    """How far a document has come in a run, whatever that makes of it."""

    READ = "read"  # and parsed, or found to be unreadable or as it was
    EXTRACTED = "extracted"  # its entries were looked for, if it could be read
    DONE = "done"  # its record says what became of it


class Onlooker:
    """Whoever watches a run from the process that does it; does nothing by itself.

    Told of every document and batch in the event loop, so it must be quick.
    """

    def advances(self, milestone: Milestone) -> None:
        """One more document has reached it."""

    def enters(self, stage: JobStage) -> None:
        """What the work is at from now on."""


UNWATCHED = Onlooker()


class Progress(Protocol):
    """Told how batches go on."""

    def reaches(self, milestone: Milestone) -> None:
        """One more document has come so far. One that is not extracted in this run is only told to be done.

        Called in the event loop, for every document; nothing is written for it.
        """

    def enters(self, stage: JobStage) -> None:
        """What the work is at. Costs nothing: it may be called for every batch."""

    async def estimated(self, micro_usd: int, refusal: str) -> None:
        """What a batch's calls may cost, and why it was held back, or ""."""
