"""The port through which chunks become knowledge entries."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from resources.artifact_store.artifact import Chunk, Entry


class Extractor(ABC):
    """Finds statements, key phrases and entities in chunks.

    `name` and `version` are parts of a document's fingerprint: changing either makes its extraction stale.
    """

    name: str
    version: str

    @abstractmethod
    async def extract(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[Entry, ...]:
        """Extract the entries of one document, in the order of its chunks, each tied to one of them.

        Identical chunks give identical entries; the id of each is what `entry_id` makes of it.
        """
