"""The words of a text in a form in which they are compared, whatever language it is in, and whoever wrote it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

# A chunk is cut to a thousand characters by default. Whatever a splitter, a setting or a correction makes of it, no
# more of it is looked at than this, so that a search has an end.
_LONGEST = 10_000


def _ranges(code_points: Iterable[int]) -> str:
    """Characters as a regular expression's class has them."""
    ranges: list[list[int]] = []
    for point in code_points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


# Vowel signs and accents that have no character together with their letter. For `re` they end a word.
_MARKS = _ranges(point for point in range(0x300, 0x1000) if unicodedata.category(chr(point)).startswith("M"))
# Normalizing takes the square of how many marks a letter has, and no language puts more on one.
_TOO_MANY_MARKS = re.compile(rf"([{_MARKS}]{{4}})[{_MARKS}]+")
# What may stand within a word, and is not seen: soft hyphens, joiners, places where a line may be broken.
_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060]+")
# Scripts without spaces between words (Thai, Lao, Burmese, Khmer, Japanese, Chinese): two characters stand for a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_FIRST_UNSPACED = "\u0e00"  # so that most words are told from a run without looking at each of their characters
_RUN = re.compile(rf"[{_UNSPACED}]{{2,}}")
_LETTERS = rf"[^\W_{_UNSPACED}]+"
_WORDS = re.compile(rf"[{_UNSPACED}]+|{_LETTERS}(?:[{_MARKS}]+(?:{_LETTERS})?)*")


def words_of(text: str, *, characters: bool = False) -> Iterator[str]:
    """The words of a text, without case, each as often as it is there. Parts of `snake_case` are words of their own.

    Args:
        text: any text; only its beginning is looked at if it is very long.
        characters: also each character of a script without spaces, so that a word of one character is found in it.
    """
    text = text[:_LONGEST]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _TOO_MANY_MARKS.sub(r"\1", _UNSEEN.sub("", text)))
    for word in _WORDS.findall(text.casefold()):
        if word >= _FIRST_UNSPACED and _RUN.fullmatch(word):
            yield from (word[i : i + 2] for i in range(len(word) - 1))
            if characters:
                yield from word
        else:
            yield word
