"""The port through which artifacts are kept: content-addressed, immutable, written before any record refers to them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence

from resources.artifact_store.artifact import Artifact


class ArtifactStoreError(Exception):
    """The artifact store could not do its work."""


class ArtifactStore(ABC):
    """Keeps what extraction produced, and named hints such as listing snapshots.

    May be used by many threads and processes at once.
    """

    @abstractmethod
    def put_many(self, artifacts: Sequence[Artifact]) -> list[str]:
        """Keep artifacts durably; the key of each is the hash of its bytes. Putting one again changes nothing.

        Raises:
            ArtifactStoreError: not all of these were kept. Those that were do no harm.
        """

    @abstractmethod
    def get_many(self, keys: Collection[str]) -> dict[str, Artifact]:
        """The artifacts that are there among `keys`, and whole: one whose bytes its key does not fit counts as lost."""

    @abstractmethod
    def of_documents(self, document_ids: Collection[str]) -> Iterator[tuple[str, Artifact]]:
        """Every whole artifact of some documents with its key, in no order. May read all there are: for repairs."""

    @abstractmethod
    def write_hint(self, name: str, value: bytes) -> None:
        """Keep a hint under a name, replacing the one before. A hint may be lost or old without harm."""

    @abstractmethod
    def read_hint(self, name: str) -> bytes | None:
        """The hint of a name, or None."""
