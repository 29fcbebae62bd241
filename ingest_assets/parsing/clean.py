"""Taking out of a text what nobody can see and what breaks databases, before offsets are counted."""

import re
from collections import Counter

# Every ASCII control except tab and newline. Looked for in UTF-8 by bytes.translate, which costs 15 µs for
# 14 KB where a regular expression costs 150.
_ASCII_CONTROLS = bytes([*range(9), *range(11, 32), 127])
# First bytes, in UTF-8, of what else has to go: C1 (c2), U+2028 and 2029 (e2 80 a8, e2 80 a9), surrogates (ed),
# the byte order mark (ef bb bf), tag characters (f3 a0).
_SUSPECTS = (b"\xc2", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xed", b"\xef\xbb\xbf", b"\xf3\xa0")

_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HYPHEN_BREAK = re.compile("\x02[ \t]*\n?")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_UNWANTED = {
    "nul": re.compile("\x00+"),
    "control": re.compile("[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]+"),
    "lone_surrogate": re.compile("[\ud800-\udfff]+"),
    "tag_character": re.compile("[\U000e0000-\U000e007f]+"),
    "byte_order_mark": re.compile("\ufeff+"),
}


_ANY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\U000e0000-\U000e007f]")


def clean(text: str, removed: Counter[str]) -> str:
    """Make text safe to store and to show.

    Line ends become newlines; words that a PDF broke at a hyphen (U+0002) are joined; NUL, control characters
    except tab and newline, lone surrogates, invisible tag characters and byte order marks go, and are counted in
    `removed` by kind. Bidirectional controls stay: Arabic and Hebrew need them (`n_bidi_controls` counts them).
    """
    if is_clean(text):
        return text
    text = _BREAKS.sub("\n", text)
    if "\x02" in text:
        text = _HYPHEN_BREAK.sub("", text)
        if is_clean(text):  # often it was all that a PDF had
            return text
    text = _SURROGATE_PAIR.sub(_join_pair, text)
    for kind, pattern in _UNWANTED.items():
        shorter = pattern.sub("", text)
        if len(shorter) != len(text):
            removed[kind] += len(text) - len(shorter)
            text = shorter
    return text


def n_bidi_controls(text: str) -> int:
    """How many characters say in which direction text is to be shown: they can make it look like another text."""
    return 0 if text.isascii() else sum(text.count(control) for control in _BIDI_CONTROLS)


def is_clean(text: str) -> bool:
    """Whether `clean` would leave a text as it is."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw.translate(None, _ASCII_CONTROLS)) != len(raw):
        return False
    if text.isascii() or not any(suspect in raw for suspect in _SUSPECTS):
        return True
    return _ANY.search(text) is None


def _join_pair(match: re.Match[str]) -> str:
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16")
