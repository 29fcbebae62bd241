"""The port through which documents are listed and read."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import msgspec

from resources.document_source.left_out import LeftOut
from resources.document_state.reasons import Reason


class SourceError(Exception):
    """A source could not be listed. Nothing may be concluded about what it no longer has.

    `partial`: what could be listed has been given before.
    """

    def __init__(self, source: str, message: str, *, partial: bool = False) -> None:
        super().__init__(f"Source '{source}': {message}")
        self.source = source
        self.partial = partial


class ReadError(Exception):
    """One document could not be read; `reason` says what became of it."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SourceObject(msgspec.Struct, frozen=True):
    """One listed object.

    Attributes:
        source_uri: what it is called.
        content_version: changes whenever the content may have changed.
        size: bytes.
        is_unlisted: a container whose members could not be listed: none of them may be taken to have vanished.
    """

    source_uri: str
    content_version: str
    size: int
    is_unlisted: bool = False


class ReadResult(msgspec.Struct, frozen=True):
    """A document's bytes and the version they were read at, proven not to have changed while reading."""

    content: bytes
    content_version: str


class DocumentSource(ABC):
    """A named place documents come from. May be used by many threads at once.

    Attributes:
        kind: what sort of place, in a word.
        name: what it is called.
        org_id: whose documents these are.
        uri: where it is, as it may be shown.
        parallel_reads: how many reads under way at once are worth their threads; 1 where a read waits for nobody.
    """

    kind: str
    name: str
    org_id: str
    uri: str
    parallel_reads: int = 1

    @abstractmethod
    def list_objects(self, prefix: bytes = b"", left_out: LeftOut | None = None) -> Iterator[SourceObject]:
        """Everything the source has, or what lies under a key prefix, in no particular order.

        Args:
            prefix: the key prefix, or the key of one object.
            left_out: counts what lies there and is not given, as far as the listing has come.

        Raises:
            SourceError: the listing failed or is incomplete.
        """

    @abstractmethod
    def read(self, source_uri: str, max_bytes: int) -> ReadResult:
        """Read one document whole.

        Raises:
            ReadError: it vanished, may not be read, is larger than `max_bytes`, or changed while it was read.
        """

    @abstractmethod
    def current_version(self, source_uri: str) -> str:
        """The content version that a listing would give an object now, without reading it.

        Raises:
            ReadError: it vanished, or cannot be asked for.
        """

    @abstractmethod
    def key_of_place(self, place: str) -> bytes | None:
        """The key, or prefix, that a path or URI names as a person writes it.

        Returns:
            b"" for the whole source; None if the place does not lie in it.
        """

    def key_of_source(self, other: "DocumentSource") -> bytes | None:
        """The prefix under which this source lists all of another one; asks no server.

        Returns:
            b"" if they are the same place; None if the other one does not lie in this one, or is left out of it.
        """
        del other
        return None
