"""Where a batch's documents get their knowledge entries from: an extractor that costs nothing, or one that is paid."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ingest_assets.engine.progress import Milestone, Progress
from resources.artifact_store.artifact import Chunk, Entry
from resources.document_state.reasons import Reason
from resources.extractor.extractor import ExtractionError, Extractor

_logger = logging.getLogger(__name__)


class Bill(msgspec.Struct, frozen=True):
    """What was paid for one document. Calls whose bill is unknown are in the ledger, and not here."""

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0

    def __add__(self, other: "Bill") -> "Bill":
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Bill(*(a + b for a, b in zip(mine, others, strict=True)))


class Finding(msgspec.Struct, frozen=True):
    """What came of one document: its entries, or a reason why there are none, with an `error` that says more."""

    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: Reason | None = None
    error: str = ""
    bill: Bill = Bill()


# Told of what came of the first so many chunks; whether to go on.
Tell = Callable[[Finding, int], Awaitable[bool]]


class Chunked(msgspec.Struct, frozen=True):
    """A document that is cut into chunks, and waits for its entries.

    With `tell` its chunks are paid for by one call after the other, and it is told after each but the last.
    """

    document_id: str
    org_id: str
    chunks: tuple[Chunk, ...]
    tell: Tell | None = None


class EntryFinder(ABC):
    """Finds the entries of the documents of a batch."""

    @abstractmethod
    async def find(self, batch: Sequence[Chunked]) -> list[Finding]:
        """What came of each document, in order. One that fails does not stop its neighbours.

        The progress is told of each document as soon as it is known what came of it.
        """


class FreeEntries(EntryFinder):
    """Entries of an extractor that costs nothing: document by document, as many at once as it likes."""

    def __init__(self, extractor: Extractor, progress: Progress) -> None:
        self._extractor = extractor
        self._progress = progress

    async def find(self, batch: Sequence[Chunked]) -> list[Finding]:
        """See EntryFinder."""
        return await asyncio.gather(*(self._find(chunked) for chunked in batch))

    async def _find(self, chunked: Chunked) -> Finding:
        finding = await self._extracted(chunked)
        self._progress.reaches(Milestone.EXTRACTED)
        return finding

    async def _extracted(self, chunked: Chunked) -> Finding:
        try:
            return Finding(await self._extractor.extract(chunked.document_id, chunked.chunks))
        except ExtractionError as error:
            return Finding(reason=error.reason, error=str(error))
        except Exception as error:
            # One document must not stop its neighbours.
            _logger.exception("Extractor '%s', document '%s'", self._extractor.name, chunked.document_id)
            return Finding(reason=Reason.INTERNAL_ERROR, error=str(error))
