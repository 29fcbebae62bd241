"""From bytes to characters: byte order mark, UTF-8, then a guess that is written down."""

import re
from typing import NamedTuple

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# UTF-8 is tried anyway, and better. The others are Python's own, or make markup of harmless letters.
_NOT_BELIEVED = frozenset(
    [
        "utf-8", "utf8", "utf-7", "utf7", "u7", "idna", "punycode", "unicode-escape", "raw-unicode-escape",
        "unicodeescape", "rawunicodeescape", "undefined",
    ]
)  # fmt: skip
_MOST_CONTROLS = 0.3
_MOST_CONTROLS_GUESSED = 0.02
_WESTERN = "cp1252"
# Its letters but those of Icelandic, and the signs of ordinary prose: quotes, dashes, currencies.
_WESTERN_CHARACTERS = frozenset(
    bytes([0x80, 0x82, 0x84, 0x85, *range(0x91, 0x9A), 0x9C, 0x9E, *range(0xA0, 0xA4), 0xA7, 0xA9, 0xAA, 0xAB, 0xAE,
           *range(0xB0, 0xB3), 0xB5, 0xB7, 0xBA, 0xBB, 0xBC, 0xBD, 0xBF, *range(0xC0, 0xD0), *range(0xD1, 0xDD),
           *range(0xDF, 0xF0), *range(0xF1, 0xFD), 0xFF]).decode("cp1252")
)  # fmt: skip
_SHOUTED = re.compile("[a-z\\xe0-\\xff][\\xc0-\\xde]")
_MOST_FOREIGN = 0.25
_MOST_ODD = 0.02
_SAMPLE = 64 * 1024  # charset-normalizer needs about 1 ms a KB
_TEXT_CONTROLS = frozenset(b"\t\n\x0b\x0c\r\x1b")
_CONTROLS = bytes(code for code in range(32) if code not in _TEXT_CONTROLS)


class Decoded(NamedTuple):
    """Characters, the encoding they were in, and what had to be guessed about it."""

    text: str
    encoding: str
    warning: str = ""


def decode(content: bytes, declared: str | None = None) -> Decoded | None:
    """Decode text; None when the bytes are not text in any encoding.

    Args:
        content: The bytes.
        declared: What the document itself says (`<meta charset>`, MIME); believed when it decodes.
    """
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            return _lenient(content, encoding)
    if declared and declared.lower().replace("_", "-") not in _NOT_BELIEVED:
        try:
            return Decoded(content.decode(declared), declared.lower())
        except (LookupError, ValueError):
            pass
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _damaged(content)
    return Decoded(text, "utf-8") if not _looks_binary(content) else _wide(content)


def _lenient(content: bytes, encoding: str, warning: str = "") -> Decoded:
    text = content.decode(encoding, "replace")
    if "\ufffd" in text and not warning:
        warning = f"Some bytes are not valid {encoding} and were replaced."
    return Decoded(text, encoding, warning)


def _damaged(content: bytes) -> Decoded | None:
    """Bytes that are not UTF-8: wide characters, UTF-8 with a few bad bytes, or another encoding."""
    wide = _wide(content)
    if wide is not None:
        return wide
    if _looks_binary(content):
        return None
    try:
        return Decoded(content.decode("utf-8", "surrogatepass"), "utf-8", "Surrogates were encoded as UTF-8.")
    except UnicodeDecodeError:
        pass
    text = content.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = len(content) - len(text)  # about the multi-byte characters that did decode
    if bad * 20 <= good:
        return Decoded(text, "utf-8", "Some bytes are not valid utf-8 and were replaced.")
    # A guess makes text of anything: bytes of no known encoding that hold NULs or many controls are no text.
    if b"\x00" in content:
        return None
    return None if _share_of_controls(content) > _MOST_CONTROLS_GUESSED else _guess(content)


def _guess(content: bytes) -> Decoded:
    encoding = _WESTERN if _is_western(content[:_SAMPLE]) else _detected(content[:_SAMPLE])
    return _lenient(content, encoding, f"The encoding is not declared; {encoding} was guessed.")


def _is_western(sample: bytes) -> bool:
    """Whether it is Windows' Western European, by far the most common: mostly ASCII, and the rest letters and quotes.

    Detection needs more text than short files have, and takes old code pages of DOS for it. Other scripts have few
    ASCII letters; Eastern European ones have letters that here are signs, or capitals within words.
    """
    try:
        text = sample.decode(_WESTERN)
    except UnicodeDecodeError:
        return False
    foreign = [character for character in text if not character.isascii()]
    odd = sum(character not in _WESTERN_CHARACTERS for character in foreign)
    letters = sum(map(str.isalpha, text))
    mostly_ascii = sum(map(str.isalpha, foreign)) < _MOST_FOREIGN * letters
    return mostly_ascii and odd <= _MOST_ODD * len(foreign) and not _SHOUTED.search(text)


def _detected(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best is not None else _WESTERN


def _looks_binary(content: bytes) -> bool:
    """Whether more than 30 % are control characters. NULs between words, as some exports have, still pass."""
    return _share_of_controls(content) > _MOST_CONTROLS


def _share_of_controls(content: bytes) -> float:
    head = content[:_SAMPLE]
    return 1 - len(head.translate(None, _CONTROLS)) / len(head)


def _wide(content: bytes) -> Decoded | None:
    """UTF-16 without a byte order mark shows by NULs in every other byte of Western text."""
    head = content[:_SAMPLE]
    if len(head) < 4 or len(content) % 2:  # noqa: PLR2004 - two characters
        return None
    half = len(head) // 2
    for encoding, high in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if high.count(0) > 0.7 * half and head.count(0) < 0.6 * len(head):
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                return None
            return Decoded(text, encoding, f"It has no byte order mark; {encoding} was guessed.")
    return None
