"""What parsing can end in, and unpacking."""

import msgspec

from resources.artifact_store.artifact import Piece
from resources.document_source.unpacker import UnpackedMember
from resources.document_state.reasons import Reason

DETAIL_CHARS = 300
TITLE_CHARS = 200
MOST_WARNINGS = 50
MOST_EMPTY_PAGES = 0.2  # of all: more of them are worth a warning


class ParsedDocument(msgspec.Struct, tag="parsed"):
    """A document's text in pieces; there is always at least one, and none is blank.

    Attributes:
        title: One line, at most 200 characters; never empty.
        media_type: What the content is, whatever its name says.
        parser: Library and version that read it.
        pieces: In reading order.
        n_chars: Characters of the cleaned text that places count in.
        pages: Pages or slides, None for formats without.
        empty_pages: How many of them gave no text.
        encoding: The character encoding, None for formats that fix their own.
        warnings: Sentences for a person about what was guessed or left out.
        removed: How many characters of each unwanted kind were taken out.
        seconds: How long the child was at it.
    """

    title: str
    media_type: str
    parser: str
    pieces: list[Piece]
    n_chars: int
    pages: int | None = None
    empty_pages: int = 0
    encoding: str | None = None
    warnings: list[str] = []
    removed: dict[str, int] = {}
    seconds: float = 0.0


class ParseFailure(msgspec.Struct, tag="failed"):
    """Why there is no text: a closed reason, and one sentence for a person."""

    reason: Reason
    detail: str
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Keep the sentence short enough for a record, and fit to be shown whatever document or child it is from."""
        if not self.detail.isprintable():
            self.detail = "".join(character if character.isprintable() else "\ufffd" for character in self.detail)
        if len(self.detail) > DETAIL_CHARS:
            self.detail = self.detail[: DETAIL_CHARS - 1] + "…"


class Unpacked(msgspec.Struct, tag="unpacked"):
    """A page of a container's members, in its order; `is_last`: there are no more."""

    members: list[UnpackedMember]
    is_last: bool
    seconds: float = 0.0


class Refused(Exception):  # noqa: N818 - a verdict on a document, not an error of the program
    """Raised inside a parser to end with a reason."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
