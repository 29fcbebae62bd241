"""How many tokens a text is for a model, without asking it: an estimate, and a bound that is never passed.

Counted with the vocabularies in the wheel of toktok-rs. OpenAI's two differ by 2% on prose, markup, code and tables;
of Chinese, Japanese and Korean the older one, cl100k, makes 1.5 times as many tokens. Anthropic's last published
vocabulary takes 1.07 times cl100k's tokens, measured on all of these (0.94 to 1.11). Newer Claude models are said to
take up to 1.35 times as many again: below the bound, above the estimate. A model nobody knows is taken for a new one.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

_O200K, _CL100K, _QWEN = "o200k_base", "cl100k_base", "qwen3.5"
# Where pydantic-ai may break a template's control token in two, by a character of three bytes.
_BREAKABLE = re.compile(rb"[<\[\]]")
# What an unknown vocabulary may take byte by byte: anything but ASCII letters and the single spaces before words.
_POOR = re.compile(rb"[^A-Za-z ]|(?<= ) ")


class _Vocabulary(NamedTuple):
    encoding: str
    factor: float = 1.0
    is_known: bool = False


_VOCABULARIES = (
    (re.compile(r"gpt-(?:4o|4\.1|4\.5|[5-9])|chatgpt|(?:^|[./:])o\d"), _Vocabulary(_O200K, is_known=True)),
    (re.compile(r"gpt-oss"), _Vocabulary(_O200K, is_known=True)),
    (re.compile(r"gpt-(?:4|3\.5)"), _Vocabulary(_CL100K, is_known=True)),
    (re.compile(r"qwen"), _Vocabulary(_QWEN)),
    (re.compile(r"claude"), _Vocabulary(_CL100K, factor=1.07)),
)
_UNKNOWN = _Vocabulary(_O200K)


class TokenCounter:
    """Counts for one model, known by its name."""

    def __init__(self, model: str) -> None:
        name = model.lower()
        self._vocabulary = next((found for pattern, found in _VOCABULARIES if pattern.search(name)), _UNKNOWN)

    def estimate(self, texts: Sequence[str]) -> list[int]:
        """About how many tokens each text is."""
        return [math.ceil(n * self._vocabulary.factor) for n in _count(texts, self._vocabulary.encoding)]

    def at_most(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text is at most.

        For OpenAI's models the larger of its two vocabularies. For others every token is at least one byte, which is
        the bound where nothing better is known; words of ASCII letters are taken at twice the count of cl100k.
        """
        others, known = _count(texts, _CL100K), _count(texts, _O200K)
        if self._vocabulary.is_known:
            return [max(pair) for pair in zip(others, known, strict=True)]
        bounds = []
        for text, n_others, n_known in zip(texts, others, known, strict=True):
            raw = text.encode("utf-8", "replace")
            n_breaks = len(_BREAKABLE.findall(raw))
            bounds.append(min(len(raw), 2 * max(n_others, n_known) + len(_POOR.findall(raw))) + 3 * n_breaks)
        return bounds


def _count(texts: Sequence[str], encoding: str) -> list[int]:
    from toktok import batch_count

    # A lone surrogate is no UTF-8; the model gets it replaced as well.
    counts: list[int] = batch_count([text.encode("utf-8", "replace").decode() for text in texts], encoding, threads=1)
    return counts
