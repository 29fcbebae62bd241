"""The port through which artifacts are kept: content-addressed, immutable, written before any record refers to them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from resources.artifact_store.artifact import Artifact


class ArtifactStoreError(Exception):
    """The artifact store could not do its work."""


class KeptArtifact(NamedTuple):
    """An artifact by its name and what it takes, in bytes."""

    key: str
    n_bytes: int


class ArtifactStore(ABC):
    """Keeps what extraction produced, and named hints such as listing snapshots.

    May be used by many threads and processes at once.
    """

    @abstractmethod
    def put_many(self, artifacts: Sequence[Artifact]) -> list[str]:
        """Keep artifacts durably; gives their keys (see `artifact_key`). Putting one again changes nothing.

        Who puts an artifact that a record is to refer to names the document in a worker's record, from before the call
        until the record is written: so `ingest gc` knows that somebody may be about to refer to it.

        Raises:
            ArtifactStoreError: not all of these were kept. Those that were do no harm.
        """

    @abstractmethod
    def get_many(self, keys: Collection[str]) -> dict[str, Artifact]:
        """The artifacts that are there among `keys`, and whole: one whose bytes its key does not fit counts as lost."""

    @abstractmethod
    def of_documents(self, document_ids: Collection[str]) -> Iterator[tuple[str, Artifact]]:
        """Every whole artifact of some documents with its key, in no order."""

    @abstractmethod
    def begin_generation(self) -> int:
        """Close the generation that keys are given in, for every process; gives the number of the new one.

        A put that begins after this gives no key of an earlier generation.
        """

    @abstractmethod
    def pages(self) -> Iterator[Sequence[KeptArtifact]]:
        """All artifacts, by ascending key. What is put or removed meanwhile may appear or not. No body is read."""

    @abstractmethod
    def remove_many(self, keys: Collection[str]) -> None:
        """Remove artifacts for good; one that is not there is a success."""

    @abstractmethod
    def remove_documents(self, document_ids: Collection[str]) -> None:
        """Remove every artifact that was ever put for these documents. Costs what these have, not what there is."""

    @abstractmethod
    def write_hint(self, name: str, value: bytes) -> None:
        """Keep a hint under a name, replacing the one before. A hint may be lost or old without harm."""

    @abstractmethod
    def read_hint(self, name: str) -> bytes | None:
        """The hint of a name, or None."""
