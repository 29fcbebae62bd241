"""The order of what a search has found: by meaning and by words, half and half.

An embedding tells what a text is about, and hardly tells a name, an option or the code of an error from any other.
Words do that, and know nothing of other words for the same. So what is nearest in meaning is looked at once more, for
the words of the query (docs/decisions/0022-words-beside-vectors.md).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from resources.store.store import Hit

# Scripts without spaces between words (Thai, Lao, Burmese, Khmer, Japanese, Chinese): two characters stand for a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_FIRST_UNSPACED = "\u0e00"
_WORDS = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_RUN = re.compile(rf"[{_UNSPACED}]{{2,}}")
# A word that is there once counts two thirds, and the more often it is there the nearer to wholly.
_SATURATION = 0.5


def ranked(query: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, under new scores; those of one score stay in the order they came in.

    Args:
        query: what was asked, in words.
        hits: the chunks nearest in meaning, each with its cosine similarity as score.

    Returns:
        Each hit with the mean of its cosine and of how much of the query's words it has: below 1, whatever it says.
    """
    found = _shares_found(query, [f"{hit.title}\n{hit.text}" for hit in hits])
    scored = [
        msgspec.structs.replace(hit, score=(hit.score + share) / 2) for hit, share in zip(hits, found, strict=True)
    ]
    return sorted(scored, key=lambda hit: -hit.score)


def words_of(text: str) -> Iterator[str]:
    """The words of a text, in a form in which they are compared: parts of `snake_case` are words of their own."""
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word >= _FIRST_UNSPACED and _RUN.fullmatch(word):
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        else:
            yield word


def _shares_found(query: str, texts: Sequence[str]) -> list[float]:
    """How much of the query's words each text has, from 0 to 1. The fewer of the texts have a word, the more it counts.

    This is BM25 (Robertson and Zaragoza, 2009) over these texts, without regard to their lengths, which the chunking
    has made alike. A word that no text has says nothing about any, and is left out.
    """
    wanted = set(words_of(query))
    counts = [Counter(word for word in words_of(text) if word in wanted) for text in texts]
    n_texts_with = Counter(word for count in counts for word in count)
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in n_texts_with.items()}
    total = sum(weights.values()) or 1
    return [sum(weights[word] * n / (n + _SATURATION) for word, n in count.items()) / total for count in counts]
