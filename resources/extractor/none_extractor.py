"""For stores of chunks only."""

from collections.abc import Sequence

from resources.artifact_store.artifact import Chunk, Entry
from resources.extractor.extractor import Extractor


class NoneExtractor(Extractor):
    """Finds nothing, on purpose."""

    name = "none"
    version = "1"

    async def extract(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[Entry, ...]:  # noqa: ARG002 the port's
        """No entries. See `Extractor.extract`."""
        return ()
