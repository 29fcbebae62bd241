"""Cutting a text to pieces, each with its place."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from resources.artifact_store.artifact import Piece, Place
from resources.document_state.reasons import Reason

from .clean import is_clean
from .joining import Joining, Span, is_heading
from .limits import MARKDOWN, Chunking
from .result import Refused
from .text import Heading, Text

# The splitter is quadratic in a stretch without line breaks (measured: 400,000 Chinese characters in one
# line 12 s, in stretches of 10,000 0.3 s), so longer lines are cut first.
_LONGEST_LINE = 10_000
# Nor is it linear in stretches of many lines (measured: a log of 7 MB, read as Markdown, 7 s; in stretches of
# 100,000 characters 0.2 s).
_LONGEST_STRETCH = 100_000
_HEADING_CHARS = 200
_LONGEST_HEADING = 1000  # with its rules, its links and their targets


def cut(text: Text, whole: str, chunking: Chunking) -> list[Piece]:
    """The pieces of a text that are not blank, in order."""
    places = _Places(text, whole)
    split = _splitter(chunking, text.markdown)
    joining = _joining(text, whole, chunking)
    pieces = []
    for start, end in _stretches(whole, text.cuts):
        found = [(start + at, piece) for at, piece in split(whole[start:end]) if piece and not piece.isspace()]
        if joining is not None:
            spans = joining.joined([Span(at, at + len(piece)) for at, piece in found])
            found = [(at, whole[at:end]) for at, end in spans]
        pieces += [Piece(piece, places.at(at, at + len(piece))) for at, piece in found]
    return pieces


def _joining(text: Text, whole: str, chunking: Chunking) -> Joining | None:
    """What follows our own splitters; a user's splitter has the last word."""
    if chunking.splitter != MARKDOWN:
        return None

    def split_within(span: Span, least: int, most: int) -> list[Span]:
        split = _kind(text.markdown)((least, most)).chunk_indices
        return [Span(span.start + at, span.start + at + len(piece)) for at, piece in split(whole[slice(*span)])]

    return Joining(whole, [heading.offset for heading in text.headings], chunking.size, split_within)


def _stretches(whole: str, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """Stretches the splitter may see at once: between cuts, no overlong line in one, and none too long itself."""
    edges = sorted({0, len(whole), *cuts, *_long_line_edges(whole)})
    for start, end in pairwise(edges):
        yield from pairwise(_edges_of_stretch(whole, start, end))


def _edges_of_stretch(whole: str, start: int, end: int) -> Iterator[int]:
    """Where it begins and ends, and between them ends of paragraphs, or of lines, as far apart as may be."""
    yield start
    while end - start > _LONGEST_STRETCH:
        least, most = start + _LONGEST_STRETCH // 2, start + _LONGEST_STRETCH
        paragraph = whole.rfind("\n\n", least, most)
        start = paragraph + 2 if paragraph >= 0 else whole.rfind("\n", least, most) + 1 or most
        yield start
    yield end


def _long_line_edges(whole: str) -> Iterator[int]:
    """Edges within and around lines that are too long, found by jumping from line end to line end."""
    start = 0
    while len(whole) - start > _LONGEST_LINE:
        newline = whole.rfind("\n", start, start + _LONGEST_LINE)
        if newline >= 0:
            start = newline + 1
            continue
        end = whole.find("\n", start)
        end = len(whole) if end < 0 else end
        yield from _edges_within(whole, start, end)
        start = end


def _edges_within(whole: str, start: int, end: int) -> Iterator[int]:
    yield start
    while end - start > _LONGEST_LINE:
        space = whole.rfind(" ", start + _LONGEST_LINE // 2, start + _LONGEST_LINE)
        start = space + 1 if space >= 0 else start + _LONGEST_LINE
        yield start


_Split = Callable[[str], list[tuple[int, str]]]


def load_splitter(chunking: Chunking) -> None:
    """Import a user's splitter now. That it cannot be is said of each document, as a fault that is not its own."""
    if chunking.splitter != MARKDOWN:
        _resolve(chunking.splitter)


@lru_cache(maxsize=8)
def _splitter(chunking: Chunking, markdown: bool) -> _Split:
    if chunking.splitter != MARKDOWN:
        found = _resolve(chunking.splitter)
        if isinstance(found, Refused):
            raise found
        return _located(found, chunking.splitter)
    split: _Split = _kind(markdown)(chunking.size, overlap=chunking.overlap).chunk_indices
    return split


def _kind(markdown: bool) -> Any:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    return MarkdownSplitter if markdown else TextSplitter


@lru_cache(maxsize=1)
def _resolve(name: str) -> Callable[[str], list[str]] | Refused:
    module, _, function = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001 - a user's module raises anything
        return Refused(Reason.INTERNAL_ERROR, f"The splitter {name} cannot be imported: {error}")
    split: Callable[[str], list[str]] = found
    return split


def _located(split: Callable[[str], list[str]], name: str) -> _Split:
    """Find where each piece of a user's splitter stands; one that is not in the text stands where it would."""

    def located(text: str) -> list[tuple[int, str]]:
        found = []
        search_from = fallback = 0
        for piece in _split_by_user(split, name, text):
            at = text.find(piece, search_from)
            if at < 0:
                at = min(fallback, len(text))
            else:
                search_from, fallback = at + 1, at + len(piece)
            found.append((at, piece))
        return found

    return located


def _split_by_user(split: Callable[[str], list[str]], name: str, text: str) -> list[str]:
    """A fault of the user's function is not the document's."""
    try:
        pieces = list(split(text))
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        raise Refused(Reason.INTERNAL_ERROR, f"The splitter {name} raised {type(error).__name__}: {error}") from error
    if not all(isinstance(piece, str) for piece in pieces):
        raise Refused(Reason.INTERNAL_ERROR, f"The splitter {name} gave something that is not a str.")
    if not is_clean("".join(pieces)):
        raise Refused(Reason.INTERNAL_ERROR, f"The splitter {name} gave control characters that were not in the text.")
    return pieces


class _Places:
    """Looks up what holds at an offset, by bisecting the marks."""

    def __init__(self, text: Text, whole: str) -> None:
        self._paths: list[tuple[str, ...]] = []
        stack: list[Heading] = []
        for heading in text.headings:
            while stack and stack[-1].level >= heading.level:
                stack.pop()
            stack.append(heading)
            self._paths.append(tuple(entry.title[:_HEADING_CHARS] for entry in stack))
        self._heading_offsets = [heading.offset for heading in text.headings]
        self._look_below(text.headings, whole)
        self._pages = _Marks(text.pages)
        self._sheets = _Marks(text.sheets)
        self._rows = _Marks(text.rows)
        self._turns = _Marks(text.turns)

    def _look_below(self, headings: list[Heading], whole: str) -> None:
        """A heading with nothing of its own is named with the one below it: there stands what it begins with."""
        for number in range(len(headings) - 2, -1, -1):
            heading, following = headings[number : number + 2]
            is_near = following.offset - heading.offset <= _LONGEST_HEADING
            if following.level > heading.level and is_near and is_heading(whole[heading.offset : following.offset]):
                self._paths[number] = self._paths[number + 1]

    def at(self, start: int, end: int) -> Place:
        heading = bisect_right(self._heading_offsets, start) - 1
        page, last_page = self._pages.span(start, end)
        row, last_row = self._rows.span(start, end)
        return Place(
            start,
            end,
            self._paths[heading] if heading >= 0 else (),
            page,
            last_page,
            self._sheets.span(start, end)[0],
            row,
            last_row,
            self._turns.span(start, end)[0],
        )


class _Marks:
    def __init__(self, marks: list[tuple[int, Any]]) -> None:
        self._offsets = [offset for offset, _ in marks]
        self._values = [value for _, value in marks]

    def span(self, start: int, end: int) -> tuple[Any, Any]:
        """The values that hold at the first and the last character; None before the first mark."""
        if not self._offsets:
            return None, None
        first = bisect_right(self._offsets, start) - 1
        last = max(first, bisect_left(self._offsets, end) - 1)
        if last < 0:
            return None, None
        return self._values[max(first, 0)], self._values[last]
