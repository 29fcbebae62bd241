"""Whether a quotation is in its chunk."""

import re
import unicodedata

# What models write in another way than the text they copy, and what nobody sees.
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)
_SPACE = re.compile(r"\s+")


def normalized(text: str) -> str:
    """The text in NFKC, with one kind of quotation mark and dash, and single spaces."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME)).strip()


def is_quotation(quotation: str, normalized_chunk: str) -> bool:
    """Whether a chunk contains a quotation, but for spaces, quotation marks and dashes.

    Args:
        quotation: what the model says the chunk contains.
        normalized_chunk: the chunk's text, `normalized`.
    """
    wanted = normalized(quotation)
    return bool(wanted) and wanted in normalized_chunk
