"""The port through which chunks become knowledge entries."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from resources.artifact_store.artifact import Chunk, Entry
from resources.document_state.reasons import Reason


class ExtractorConfigError(ValueError):
    """An extractor cannot work as it is configured. The message says what to change."""


class ExtractionError(Exception):
    """One document's entries could not be extracted. `reason` says whether trying again can help."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Extractor(ABC):
    """Finds statements, key phrases and entities in chunks.

    `name` and `version` are parts of a document's fingerprint: changing either makes its extraction stale. Of one that
    `is_paid`, calls are estimated, admitted and journaled.
    """

    name: str
    version: str
    is_paid: ClassVar[bool] = False

    @property
    def parts(self) -> Mapping[str, str]:
        """What a document's fingerprint says of this extractor, by part: a changed part makes an extraction stale."""
        return {"extractor": f"{self.name} {self.version}"}

    def check(self) -> None:  # noqa: B027 most have nothing to check
        """Before any document is worked on: whether the configuration is enough.

        Raises:
            ExtractorConfigError: it is not.
        """

    def check_access(self) -> None:  # noqa: B027 most ask nobody
        """Before any document is worked on: whether who is to be asked is named, and a key is given if one must be.

        Looks at the environment alone; whether the key is right, only the first call can tell.

        Raises:
            ExtractorConfigError: it is not.
        """

    async def close(self) -> None:  # noqa: B027 most hold nothing
        """Let go of connections, in the event loop that used them."""

    @abstractmethod
    async def extract(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[Entry, ...]:
        """Extract the entries of one document, in the order of its chunks, each tied to one of them.

        Identical chunks give identical entries; the id of each is what `entry_id` makes of it. Several documents may be
        under way at once.

        Raises:
            ExtractionError: this document's cannot be extracted, or not now.
        """
