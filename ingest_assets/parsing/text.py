"""A document's text while it is being read: cleaned as it grows, with marks at the places worth naming."""

import re
from collections import Counter
from typing import NamedTuple

from resources.document_state.reasons import Reason

from .clean import clean
from .limits import ParseLimits
from .result import DETAIL_CHARS, MOST_WARNINGS, TITLE_CHARS, Refused

# What programs put into a title by themselves.
_MADE_BY = re.compile(r"^Microsoft (?:Office )?(?:Word|PowerPoint|Excel) - ")
_JUNK_TITLES = frozenset(
    ["powerpoint presentation", "word document", "presentation", "untitled", "(anonymous)", "no title"]
)


class Source(NamedTuple):
    """One document as a format module sees it; `text` is the decoded content where the type is textual."""

    filename: str
    content: bytes
    limits: ParseLimits
    text: str = ""


class Heading(NamedTuple):
    """A heading at an offset; level 1 is the outermost."""

    offset: int
    level: int
    title: str


class Text:
    """What a format module fills.

    Attributes:
        markdown: Whether the text may be cut by Markdown's structure.
        media_type: What a format module has found the content to be, if its type is a closer one than it was handed.
        headings, pages, sheets, rows, turns: Marks in rising order of their offset.
        cuts: Offsets no piece may reach across.
    """

    def __init__(self, limits: ParseLimits) -> None:
        self.markdown = True
        self.media_type: str | None = None
        self.title = ""
        self.library: str | None = None
        self.n_pages: int | None = None
        self.empty_pages = 0
        self.warnings: list[str] = []
        self.removed: Counter[str] = Counter()
        self.headings: list[Heading] = []
        self.pages: list[tuple[int, int]] = []
        self.sheets: list[tuple[int, str]] = []
        self.rows: list[tuple[int, int]] = []
        self.turns: list[tuple[int, int | None]] = []
        self.cuts: list[int] = []
        self.length = 0
        self._limit = limits.text_chars
        self._parts: list[str] = []

    def add(self, part: str) -> str:
        """Append text, cleaned; returns what was appended."""
        part = clean(part, self.removed)
        self.length += len(part)
        if self.length > self._limit:
            raise Refused(Reason.TOO_LARGE, f"It has more characters; limits.text_chars is {self._limit:,}.")
        self._parts.append(part)
        return part

    def block(self, part: str) -> None:
        """Append a paragraph: text and a blank line. Blank text is left out."""
        part = part.strip()
        if part:
            self.add(part + "\n\n")

    def heading(self, level: int, title: str) -> None:
        """Append a heading, one line of Markdown, and mark it."""
        title = " ".join(clean(title, self.removed).split())
        if title:
            self.headings.append(Heading(self.length, level, title))
            self.add(f"{'#' * min(level, 6)} {title}\n\n")

    def mark_heading(self, level: int, title: str) -> None:
        """Mark a heading that is not in the text itself."""
        title = " ".join(clean(title, self.removed).split())
        if title:
            self.headings.append(Heading(self.length, level, title))

    def page(self, number: int) -> None:
        """A page or slide starts here."""
        self.pages.append((self.length, number))

    def sheet(self, name: str) -> None:
        """A sheet starts here; no piece reaches across its edge."""
        self.cuts.append(self.length)
        self.sheets.append((self.length, " ".join(clean(name, self.removed).split())))

    def row(self, number: int) -> None:
        """A row of a table starts here, counted from 1 as its program counts."""
        self.rows.append((self.length, number))

    def turn(self, number: int | None) -> None:
        """A turn of a conversation starts here, counted from 0; None: what belongs to none. No piece reaches across."""
        self.cuts.append(self.length)
        self.turns.append((self.length, number))

    def suggest_title(self, title: object) -> None:
        """Take a title unless there is one."""
        if self.title or not isinstance(title, str):
            return
        words = _MADE_BY.sub("", " ".join(clean(title, self.removed).split()))
        if words.lower() not in _JUNK_TITLES:
            self.title = words[:TITLE_CHARS].strip()

    def warn(self, sentence: str) -> None:
        """Note something a person should know, once."""
        sentence = sentence[:DETAIL_CHARS]
        if sentence not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(sentence)

    def finish(self) -> str:
        """The whole text."""
        return "".join(self._parts)
