"""The port through which documents become searchable: one named, isolated index of one kind.

A store is written document by document, each whole or absent, many in one transaction where the kind has one. Rows
carry the fencing token of the claim they were written under: a worker whose claim was taken over is refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from resources.artifact_store.artifact import Chunk, Entry, Place
from resources.embedder.embedder import EmbedderStamp, Vectors

__all__ = [
    "BuildResult",
    "DocumentBuild",
    "EmbedderStamp",
    "HeldContent",
    "HeldDocument",
    "Hit",
    "Removal",
    "RowFault",
    "Store",
    "StoreChangedError",
    "StoreConfigError",
    "StoreCorruptError",
    "StoreError",
    "StoreMismatchError",
    "StoreTooNewError",
    "StoreUnavailableError",
]


class StoreError(Exception):
    """Something is wrong with one store. `store` is its slug."""

    def __init__(self, store: str, message: str) -> None:
        super().__init__(f"Store '{store}': {message}")
        self.store = store


class StoreUnavailableError(StoreError):
    """The store did not answer, or stayed locked longer than we wait. Trying again can help."""


class StoreChangedError(StoreUnavailableError):
    """The store lost chunks between `held_chunks` and `write` (dropped, say). Read what is held again, then write."""


class StoreConfigError(StoreError, ValueError):
    """The store's configuration is wrong: an unknown kind or option, a value of the wrong type."""


class StoreTooNewError(StoreError):
    """A newer version of this program made the store's data. Trying again cannot help."""


class StoreMismatchError(StoreError):
    """The store's data was made with another embedder. Trying again cannot help."""


class StoreCorruptError(StoreError):
    """What the store holds cannot be read. Trying again cannot help."""


class DocumentBuild(msgspec.Struct, frozen=True):
    """One document as it shall stand in a store. At most one of a document in one call.

    `vectors` holds a vector, of shape (dimension,), for each chunk id the store does not hold yet (see
    `Store.held_chunks`); a chunk that is held keeps its row and its vector, and only its position and place are
    renewed.

    `rewrite`: nothing that is held is trusted: every row is written anew, so every chunk needs its vector.
    """

    document_id: str
    org_id: str
    source: str
    source_uri: str
    title: str
    fencing_token: int
    chunkset_hash: str
    chunks: Sequence[Chunk]
    entries: Sequence[Entry]
    vectors: Mapping[str, Vectors]
    rewrite: bool = False


class BuildResult(msgspec.Struct, frozen=True):
    """What writing or removing one document did, counted in chunks.

    `fenced`: refused, a newer claim has written or removed the document; nothing was changed. `held_token` is that
    claim's token, and 0 where nothing was refused.
    """

    document_id: str
    fenced: bool = False
    n_written: int = 0
    n_kept: int = 0
    n_removed: int = 0
    held_token: int = 0


class Removal(msgspec.Struct, frozen=True):
    """A document to take out of the store, under the token of the claim that does it."""

    document_id: str
    fencing_token: int


class Hit(msgspec.Struct, frozen=True):
    """One search result. `score` is the cosine similarity, 1 is identical; whoever ranks results puts another there."""

    score: float
    document_id: str
    source_uri: str
    title: str
    chunk_id: str
    text: str
    place: Place


class HeldDocument(msgspec.Struct, frozen=True):
    """What a store really holds of one document, for comparing with its record."""

    document_id: str
    chunkset_hash: str
    n_chunks: int
    n_entries: int


class RowFault(StrEnum):
    """What can be wrong with the rows of a document, whatever the document shall be."""

    DAMAGED_DOCUMENT = "damaged document row"  # it does not fit its checksum
    DAMAGED_CHUNK = "damaged chunk"  # text, vector or token do not fit the checksum, or no search finds it
    DAMAGED_ENTRY = "damaged entry"  # it is another tenant's or source's than its document
    UNCHECKED = "row without checksum"  # written by an earlier version, or it was lost
    WRONG_NUMBER = "rows missing or too many"  # than the document's row speaks of
    TWICE = "row twice"
    ORPHAN = "row without a document"
    UNSEEN = "row that no reader sees"  # a refused or killed writer left it


class HeldContent(msgspec.Struct, frozen=True):
    """What a store holds of one document.

    Attributes:
        document_id: which document.
        fencing_token: the largest token any of its rows carries.
        content_hash: over all its rows say, comparable with `content.expected_content`; "" without a document row.
        chunkset_hash, source: as the document's row says.
        faults: what is wrong with its rows by themselves, and with how many.
    """

    document_id: str
    fencing_token: int
    content_hash: str
    chunkset_hash: str
    source: str
    faults: dict[RowFault, int]


_NO_DOCUMENT = "no-document"  # no id of a document: these end in 16 hex digits


class Store(ABC):
    """One index. Safe for several processes at once; methods block, so call them off the event loop if it matters."""

    kind: ClassVar[str]
    Config: ClassVar[type[msgspec.Struct]]
    # Whether no option can hold a secret, because `from_config` refuses one: then options are written down and shown.
    config_is_shown: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def from_config(cls, slug: str, stamp: EmbedderStamp, config: Any) -> "Store":
        """Make the store from its kind's own `Config`. Nothing is opened or written yet."""

    def __init__(self, slug: str, stamp: EmbedderStamp) -> None:
        self.slug = slug
        self.stamp = stamp

    @abstractmethod
    def held_chunks(self, document_ids: Sequence[str]) -> dict[str, set[str]]:
        """Chunk ids (document id → ids) that the store holds with a vector, so that only new ones are embedded."""

    def takes_vectors(self) -> bool:
        """Whether the store can be written and searched with its embedder: it has no vectors, or that one's.

        Raises:
            StoreUnavailableError: it could not be asked.
        """
        try:
            self.held_chunks([_NO_DOCUMENT])
        except StoreMismatchError:
            return False
        return True

    @abstractmethod
    def write(self, builds: Sequence[DocumentBuild]) -> list[BuildResult]:
        """Make each document stand exactly as given, in one transaction where the kind has one; a result each.

        Raises:
            StoreMismatchError: the store holds vectors of another embedder; nothing was changed.
            StoreChangedError: a chunk is neither held nor given a vector; nothing was changed.
            StoreUnavailableError: the store could not be reached or locked in time; nothing was changed.
        """

    @abstractmethod
    def remove(self, removals: Sequence[Removal]) -> list[BuildResult]:
        """Take documents out, rows and all; a document the store does not hold is a success with nothing removed.

        The token is remembered, so that a late writer of a removed document is refused as well. Allowed whatever
        embedder the store's vectors come from.
        """

    @abstractmethod
    def remaining(self, document_ids: Sequence[str]) -> set[str]:
        """Which of these the store still holds anything of, whether a search can find it or not.

        What a removal is proven by. Allowed whatever embedder the store's vectors come from.
        """

    @abstractmethod
    def search(
        self,
        vector: Vectors,
        k: int,
        *,
        org_id: str,
        document_id: str | None = None,
        source: str | None = None,
    ) -> list[Hit]:
        """The k chunks nearest to `vector` (shape (dimension,)), best first, ties by document and chunk id."""

    @abstractmethod
    def held_documents(self, after: str = "", limit: int = 10_000) -> list[HeldDocument]:
        """A page of what the store really holds, by document id ascending, beginning behind `after`."""

    @abstractmethod
    def held_contents(self, document_ids: Sequence[str]) -> dict[str, HeldContent]:
        """What is really held of some documents, by id, every row looked at. Memory grows with their rows.

        A document of which there is no row is left out; rows without a document's row, or that no reader sees, count.

        Raises:
            StoreMismatchError: the store holds vectors of another embedder.
        """

    @abstractmethod
    def held_ids(self, after: str = "", limit: int = 10_000) -> list[str]:
        """A page of the ids of all documents any row names, ascending, beginning behind `after`."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the store's data as a whole. Dropping what is not there is a success."""
