"""Entities that can be told by their form alone: addresses, links, dates, amounts of money, names of several words.

Precision before recall: a wrong entity is worse than a missed one. The patterns use possessive quantifiers, which never
go back, so the time is linear in the text.
"""

import re
from collections.abc import Iterator

from resources.extractor.key_phrases import STOP_WORDS

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{2,63}+){1,4}+")
_URL = re.compile(r"https?://[^\s<>\"'`\]\[{}|\\^]{4,300}+")
_DATE = re.compile(
    r"(?<!\d)(?:\d{4}-[01]\d-[0-3]\d"
    r"|\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December) \d{4}"
    r"|(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2}, \d{4})(?!\d)"
)
_MONEY = re.compile(r"(?<![\w$])(?:[$€£] ?|(?:USD|EUR) )\d{1,3}+(?:,?\d{3}){0,4}+(?:\.\d{1,2}+)?+(?![\d])")
_NAME = re.compile(r"[A-Z][a-z]{1,30}+(?: [A-Z][a-z]{1,30}+){1,3}+")
_TRAILING = ".,;:!?)*"


def entities_in(paragraph: str) -> Iterator[str]:
    """The entities of a paragraph, by form and then in its order."""
    if "@" in paragraph:
        yield from _EMAIL.findall(paragraph)
    if "://" in paragraph:
        for url in _URL.findall(paragraph):
            yield url.rstrip(_TRAILING)
    # Looking for a sign first is ten times as fast as a pattern that finds nothing.
    if "20" in paragraph or "19" in paragraph:
        yield from _DATE.findall(paragraph)
    if "$" in paragraph or "€" in paragraph or "£" in paragraph or "USD" in paragraph or "EUR" in paragraph:
        yield from _MONEY.findall(paragraph)
    yield from _names_in(paragraph)


def _names_in(paragraph: str) -> Iterator[str]:
    for match in _NAME.finditer(paragraph):
        words = match[0].split(" ")
        # A sentence begins with a capital as well: "The Python Package Index", "If Red Hat".
        while words and words[0].lower() in STOP_WORDS:
            del words[0]
        if len(words) > 1 and _stands_alone(paragraph, match):
            yield " ".join(words)


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Whether the match is not a part of longer words, as in `someThing Else2`; look-behind is three times slower."""
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return not (before.isalnum() or before in {"_", ".", "-"} or after.isalnum() or after in {"_", "-"})
