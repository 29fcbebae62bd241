"""The order of what a search has found: by meaning and by words, half and half.

An embedding tells what a text is about, and hardly tells a name, an option or the code of an error from any other.
Words do that, and know nothing of other words for the same. So what is nearest in meaning is looked at once more, for
the words of the query (docs/decisions/0022-words-beside-vectors.md).
"""

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from ingest_assets.requests.words import words_of
from resources.store.store import Hit

# A word that is there once counts two thirds, and the more often it is there the nearer to wholly.
_SATURATION = 0.5


def ranked(query: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, under new scores; those of one score stay in the order they came in.

    Args:
        query: what was asked, in words.
        hits: the chunks nearest in meaning, each with its cosine similarity as score.

    Returns:
        Each hit with the mean of its cosine and of its share of the query's words: below 1, and seldom below 0.
    """
    found = _shares_found(query, [f"{hit.title}\n{hit.text}" for hit in hits])
    scored = [
        msgspec.structs.replace(hit, score=(hit.score + share) / 2) for hit, share in zip(hits, found, strict=True)
    ]
    return sorted(scored, key=lambda hit: -hit.score)


def _shares_found(query: str, texts: Sequence[str]) -> list[float]:
    """How much of the query's words each text has, from 0 to 1. The fewer of the texts have a word, the more it counts.

    This is BM25 (Robertson and Zaragoza, 2009) over these texts, without regard to their lengths, which made no
    difference. A word that no text has says nothing about any, and is left out.
    """
    wanted = set(words_of(query))
    counts = [Counter(word for word in words_of(text, characters=True) if word in wanted) for text in texts]
    n_texts_with = Counter(word for count in counts for word in count)
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in n_texts_with.items()}
    total = math.fsum(weights.values()) or 1
    # Added exactly: in whichever order a text has the words, chunks that have the same are equal.
    return [math.fsum(weights[word] * n / (n + _SATURATION) for word, n in count.items()) / total for count in counts]
