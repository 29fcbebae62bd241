"""Keeping what only announces a passage in one piece with it.

A splitter ends a piece where the next part does not fit. So a heading, a list's first line or a code's opening fence
was left by itself, or at the end of a piece on something else: who finds it by a search learns nothing from it, and
the words of the heading do not lead to its passage.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

# A fence with its language; a directive with at most an argument, or a label, of reStructuredText.
_ANNOUNCES = re.compile(r"[ \t]*(?:(?:`{3,}|~{3,})[ \t]*[\w{][^\n]*|\.\. [\w:-]+::(?:[ \t]+\S+)?|\.\. _[^\n]+:)[ \t]*")
_LINK_TARGET = re.compile(r"^ {0,3}\[[^\]\n]+\]:[^\n]*$", re.MULTILINE)  # what Markdown does not show
_WHOLE_CODE = re.compile(r"\s*(`{3,}|~{3,}).*\n[ \t]*\1[`~]*\s*", re.DOTALL)
_SHORT_SHARE = 10  # of the most characters: a piece not longer says too little to be found alone
_LEAD_SHARE = 4  # what is longer is a passage of its own


class Span(NamedTuple):
    """A piece, by its offsets in the whole text."""

    start: int
    end: int


# Cuts a span into ones not longer than the second number, and not shorter than the first where the text allows.
SplitWithin = Callable[[Span, int, int], list[Span]]


class Joining:
    """Moves the ends of a text's pieces.

    Args:
        whole: the text.
        headings: the offsets of its headings, rising.
        size: the most characters of a piece.
        split_within: how a piece is cut that has no room for what announces it.
    """

    def __init__(self, whole: str, headings: Sequence[int], size: int, split_within: SplitWithin) -> None:
        self._whole = whole
        self._headings = headings
        self._size = size
        self._split_within = split_within

    def joined(self, spans: Sequence[Span]) -> list[Span]:
        """The same text in spans of which none ends with what announces the next one, as far as the size allows."""
        found: list[Span] = []
        waiting = list(reversed(spans))
        while waiting:
            span = waiting.pop()
            announced = self._announced(span, waiting[-1]) if waiting else []
            if not announced:
                found.append(span)
                continue
            waiting.pop()
            if kept := self._whole[span.start : announced[0].start].rstrip():
                found.append(Span(span.start, span.start + len(kept)))
            if len(announced) > 1:  # the first is as it shall be; one that was not cut may announce the next in turn
                found.append(announced.pop(0))
            waiting.extend(reversed(announced))
        return found

    def _announced(self, span: Span, following: Span) -> list[Span]:
        """The following span with what announces it, in parts if that is too long; none if it stays as it is."""
        lead = self._lead(span, following)
        if lead >= min(span.end, following.start):
            return []
        if following.end - lead <= self._size:
            return [Span(lead, following.end)]
        room = self._size - (following.start - lead)
        if self._size - room > self._size // _LEAD_SHARE or _WHOLE_CODE.fullmatch(self._whole, *following):
            return []
        # Cut in halves: cut where the room ends, a line or two would be left over.
        first, *others = self._split_within(following, (following.end - following.start) // 2, room)
        return [Span(lead, first.end), *others]

    def _lead(self, span: Span, following: Span) -> int:
        """Where that begins in a span which only announces the following one; its end if nothing does."""
        if span.end - span.start <= self._size // _SHORT_SHARE and not self._heading_at(following.start):
            return span.start
        lead = span.end
        while (start := self._start_of_announcement(span.start, self._end_of_words(span.start, lead))) is not None:
            lead = start
        return lead

    def _end_of_words(self, start: int, end: int) -> int:
        while end > start and self._whole[end - 1].isspace():
            end -= 1
        return end

    def _start_of_announcement(self, after: int, end: int) -> int | None:
        """Where the heading or other line begins that ends here; None if it is a line of text, or there is none."""
        if end == after:
            return None
        before = bisect_left(self._headings, end)
        if before and self._headings[before - 1] >= after and is_heading(self._whole[self._headings[before - 1] : end]):
            return self._headings[before - 1]
        line = max(after, self._whole.rfind("\n", after, end) + 1)
        return line if _ANNOUNCES.fullmatch(self._whole, line, end) else None

    def _heading_at(self, offset: int) -> bool:
        return bisect_left(self._headings, offset) < bisect_left(self._headings, offset + 1)


def is_heading(passage: str) -> bool:
    """Whether a passage is a heading and no more: one line has words, the others are rules or not shown."""
    return sum(any(map(str.isalnum, line)) for line in _LINK_TARGET.sub("", passage).splitlines()) <= 1
