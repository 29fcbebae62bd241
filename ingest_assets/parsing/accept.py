"""What the parent believes of a child's reply: text within bounds, and nothing else.

A parser that a document took over writes what it likes into the pipe. The decoder has proven that it has the shape of
an outcome; here its values are proven to be ones that our own code could have made.
"""

from collections.abc import Iterator

from resources.document_state.reasons import Reason

from .clean import is_clean
from .formats import FORMATS
from .frames import Reply
from .result import DETAIL_CHARS, MOST_WARNINGS, TITLE_CHARS, ParsedDocument, ParseFailure, Unpacked

_NAME_CHARS = 100
_MOST_KINDS = 20

# What parsing can find. Other reasons (a source that is gone, a store) are not a parser's to tell.
PARSE_REASONS = frozenset(
    [
        Reason.EMPTY_FILE, Reason.NO_TEXT, Reason.IMAGE_ONLY, Reason.PASSWORD_REQUIRED, Reason.MALFORMED,
        Reason.UNSUPPORTED_TYPE, Reason.TOO_LARGE, Reason.TOO_MANY_PAGES, Reason.TOO_DEEP, Reason.INFLATES_TOO_MUCH,
        Reason.ARCHIVE, Reason.TIMED_OUT, Reason.OUT_OF_MEMORY, Reason.PARSER_CRASHED, Reason.INTERNAL_ERROR,
    ]
)  # fmt: skip


def is_acceptable(outcome: Reply, *, unpacking: bool) -> bool:
    """Whether a decoded reply is one that an honest child could have sent to what it was asked."""
    if isinstance(outcome, ParseFailure):
        return outcome.reason in PARSE_REASONS
    if isinstance(outcome, Unpacked):
        # Names are given names of ours where they are used, and bytes are as hostile as ever.
        return (
            unpacking
            and all(
                (member.reason is None or (member.reason in PARSE_REASONS and not member.content))
                and len(member.detail) <= DETAIL_CHARS
                and member.detail.isprintable()
                for member in outcome.members
            )
            and (outcome.is_last or bool(outcome.members))
        )
    if unpacking:
        return False
    # Text by text: a document of the largest size is then never held twice.
    return (
        _is_within_bounds(outcome)
        and all(piece.text and not piece.text.isspace() for piece in outcome.pieces)
        and all(map(is_clean, _texts(outcome)))
    )


def _is_within_bounds(document: ParsedDocument) -> bool:
    return (
        bool(document.pieces)
        and 0 < len(document.title) <= TITLE_CHARS
        and "\n" not in document.title
        and document.media_type in FORMATS
        and len(document.parser) <= _NAME_CHARS
        and len(document.encoding or "") <= _NAME_CHARS
        and len(document.warnings) <= MOST_WARNINGS
        and all(len(warning) <= DETAIL_CHARS for warning in document.warnings)
        and len(document.removed) <= _MOST_KINDS
        and all(len(kind) <= _NAME_CHARS and n >= 0 for kind, n in document.removed.items())
        and document.n_chars > 0
        and document.empty_pages >= 0
        and (document.pages or 0) >= 0
    )


def _texts(document: ParsedDocument) -> Iterator[str]:
    """Every string of a document that somebody will see."""
    yield from (document.title, document.parser, document.encoding or "", *document.warnings, *document.removed)
    headings: tuple[str, ...] = ()
    for piece in document.pieces:
        yield piece.text
        yield piece.place.sheet or ""
        if piece.place.headings != headings:
            headings = piece.place.headings
            yield from headings
