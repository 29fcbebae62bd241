"""The headings of a PDF: what its outline (its bookmarks) names, found again among the lines of the pages it leads to.

A PDF has lines and no headings. Where a writer's program has left an outline, its entries are the document's headings
in the words in which they stand on the page. An entry that no line has ("Blank Page", the name of a file) is none.
"""

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium_c

_MOST_ENTRIES = 10_000
# An entry that names its destination has the engine look through all names (measured: 10,000 among 100,000 take 53 s).
_MOST_LOOKS_AT_NAMES = 50_000_000
_DEEPEST = 8
_TITLE_BYTES = 1000
_END_BYTES = 2  # two zero bytes end a title
_MOST_LINES = 3  # that a heading is broken into
_LONGEST_LINE = 300
_MOST_PLACES = 20  # of the same words on a page that are tried
_PAGE_LABEL = re.compile(r"(?:(?:page|slide|seite|folie)\s*)?\d+", re.IGNORECASE)
_UNIMPORTANT = re.compile(r"[\W_]+")
# An outline's entry often lacks the number that its heading has on the page, or has one where the page has none.
_NUMBER = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?(?:\d+(?:\.\d+)*|[a-z]|[ivxlc]+)[\s.:)\]\u2013-]+", re.IGNORECASE
)


class Entry(NamedTuple):
    """An entry of an outline; level 1 is the outermost."""

    level: int
    title: str


Lines = tuple[int, int]  # by their numbers on a page, from 0, the last one excluded


class Found(NamedTuple):
    """A heading on a page."""

    lines: Lines
    level: int


def outline_of(document: Any) -> dict[int, list[Entry]]:
    """The entries of an open document's outline by the number, from 0, of the page they lead to, in their order."""
    entries: dict[int, list[Entry]] = defaultdict(list)
    most = min(_MOST_ENTRIES, _MOST_LOOKS_AT_NAMES // max(1, pdfium_c.FPDF_CountNamedDests(document)))
    seen: set[int] = set()  # an outline may lead in a circle
    waiting = [(pdfium_c.FPDFBookmark_GetFirstChild(document, None), 1)]
    while waiting and len(seen) < most:
        bookmark, level = waiting.pop()
        if not bookmark or (address := ctypes.addressof(bookmark.contents)) in seen:
            continue
        seen.add(address)
        waiting.append((pdfium_c.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level < _DEEPEST:
            waiting.append((pdfium_c.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
        page, title = _page_of(document, bookmark), _title_of(bookmark)
        if page >= 0 and title and not _PAGE_LABEL.fullmatch(title):
            entries[page].append(Entry(level, title))
    return dict(entries)


def running_heads(pages: Iterable[Sequence[str]]) -> set[str]:
    """What several pages begin with, by their lines: such a line is a heading on none where another one is."""
    heads = Counter(_keys(lines[0])[1] for lines in pages if lines)
    return {head for head, n_pages in heads.items() if n_pages > 1}


def headings_on(lines: Sequence[str], entries: Sequence[Entry], heads: Collection[str] = ()) -> list[Found]:
    """Where the entries of a page stand among its lines, ascending; those that stand nowhere are left out.

    Args:
        lines: the page.
        entries: those that lead to it.
        heads: of all pages, see `running_heads`.
    """
    wanted = {key for entry in entries for key in _keys(entry.title)} - {""}
    if not wanted or not lines:
        return []
    heads_this = _keys(lines[0])[1] in heads
    places = _places(lines, wanted)
    taken: set[int] = set()
    found = []
    for entry in entries:
        for lines_of_it in _candidates(places, entry.title, heads_this):
            if taken.isdisjoint(range(*lines_of_it)):
                taken.update(range(*lines_of_it))
                found.append(Found(lines_of_it, entry.level))
                break
    return sorted(found)


def _candidates(places: Mapping[str, list[Lines]], title: str, heads_this: bool) -> Iterator[Lines]:
    """Where a title may stand, the likeliest first: in the fewest lines, since the one above may be a page's number."""
    for key in dict.fromkeys(_keys(title)):
        yield from sorted(places.get(key, []), key=lambda it: (it[1] - it[0], heads_this and it[0] == 0))


def _places(lines: Sequence[str], wanted: Collection[str]) -> Mapping[str, list[Lines]]:
    """Lines, and a few that follow each other, by which of the wanted keys they have."""
    places: dict[str, list[Lines]] = defaultdict(list)
    keys = [_keys(f"{line} ") if line.strip() and len(line) <= _LONGEST_LINE else () for line in lines]
    for first in range(len(lines)):
        following = list(takewhile(bool, keys[first : first + _MOST_LINES]))
        for n_lines in range(1, len(following) + 1):
            rest = "".join(whole for whole, *_ in following[1:n_lines])
            for key in dict.fromkeys(start + rest for start in following[0]):
                if key in wanted and len(places[key]) < _MOST_PLACES:
                    places[key].append((first, first + n_lines))
    return places


def _keys(words: str) -> tuple[str, ...]:
    """What it is found by: its letters and digits, and those without the number before it."""
    return _key(words), _key(_NUMBER.sub("", words, count=1))


def _key(words: str) -> str:
    return _UNIMPORTANT.sub("", words).casefold()


def _page_of(document: Any, bookmark: Any) -> int:
    """The page it leads to, from 0; -1 if it leads elsewhere, or nowhere."""
    target = pdfium_c.FPDFBookmark_GetDest(document, bookmark)
    if not target:
        action = pdfium_c.FPDFBookmark_GetAction(bookmark)
        if not action or pdfium_c.FPDFAction_GetType(action) != pdfium_c.PDFACTION_GOTO:
            return -1
        target = pdfium_c.FPDFAction_GetDest(document, action)
    return int(pdfium_c.FPDFDest_GetDestPageIndex(document, target)) if target else -1


def _title_of(bookmark: Any) -> str:
    """Its words; "" if they are none, or more than a heading has."""
    n_bytes = pdfium_c.FPDFBookmark_GetTitle(bookmark, None, 0)
    if not _END_BYTES < n_bytes <= _TITLE_BYTES:
        return ""
    buffer = ctypes.create_string_buffer(n_bytes)
    pdfium_c.FPDFBookmark_GetTitle(bookmark, buffer, n_bytes)
    return " ".join(buffer.raw[:-_END_BYTES].decode("utf-16-le", "ignore").split())
