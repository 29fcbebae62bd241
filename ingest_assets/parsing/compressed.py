"""Files that hold one other file, compressed: gzip, bzip2, xz. Inflated here and counted, whatever a header says."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable
from typing import IO, Any

from resources.document_state.reasons import Reason

from .limits import ParseLimits
from .result import Refused

_STEP = 1 << 20
_KINDS: tuple[tuple[re.Pattern[bytes], Callable[..., IO[Any]]], ...] = (
    (re.compile(rb"\x1f\x8b"), gzip.open),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.open),
    (re.compile(rb"\xfd7zXZ\x00"), lzma.open),  # its dictionary, up to 4 GiB, is memory as any other
)


def is_compressed(content: bytes) -> bool:
    """Whether this begins as one of these files does."""
    return _opener(content) is not None


def inflate(content: bytes, limits: ParseLimits) -> bytes:
    """What such a file holds; several streams, one after the other, are one file.

    Raises:
        Refused: `malformed`, `inflates_too_much`.
    """
    opener = _opener(content)
    assert opener
    inflated = bytearray()
    try:
        with opener(io.BytesIO(content)) as file:
            while chunk := file.read(_STEP):
                inflated += chunk
                check_size(len(inflated), limits)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise Refused(Reason.MALFORMED, "The compressed file is damaged or cut off.") from error
    return bytes(inflated)


def check_size(n_bytes: int, limits: ParseLimits) -> None:
    """Refuse what has come out of inflating so far.

    Raises:
        Refused: `inflates_too_much`.
    """
    if n_bytes > limits.inflated_bytes:
        raise Refused(
            Reason.INFLATES_TOO_MUCH, f"It unpacks to more; limits.inflated_bytes is {limits.inflated_bytes:,}."
        )


def _opener(content: bytes) -> Callable[..., IO[Any]] | None:
    return next((opener for magic, opener in _KINDS if magic.match(content)), None)
