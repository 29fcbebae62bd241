"""Counting what a PDF's pages inflate to, before an engine does it without telling.

Dictionaries may lie about lengths, so a stream is what stands between its keywords. Pictures and fonts are left out:
reading text inflates no picture, and a page's bomb is no font.
"""

import re
import zlib
from collections.abc import Iterable, Iterator

from ingest_assets.parsing.limits import ParseLimits
from ingest_assets.parsing.result import Refused
from resources.document_state.reasons import Reason

_STEP = 1 << 20
_ZLIB_HEADER = 2
_MOST_BY_ONE_FILTER = 1032  # to one: no deflated byte stands for more
# As engines take it: with any end of line, or none behind a dictionary. It begins with what is quick to search for.
_STREAM = re.compile(rb"stream(?<!endstream)[ \t]*(\r\n?|\n)?")
_BLANKS = 64  # as many as may stand between a dictionary and its stream on one line
_ESCAPED = re.compile(rb"#([0-9A-Fa-f]{2})")
_NO_CONTENT = re.compile(rb"/(?:Im|Length[123]|Type1C|CIDFontType0C|OpenType|XRef|XML|EmbeddedFile|DCT|JPX)")
_ELSEWHERE = re.compile(rb"/F(?:ilter)?\s+\d+\s+\d+\s+R\b")
_FLATE = re.compile(rb"/Fl(?:ateDecode)?\b")
# In one: a look at each byte is dear.
_TWICE_OR_ELSEWHERE = re.compile(rb"/Fl(?:ateDecode)?[ \t\r\n\x00\x0c]*/Fl|" + _ELSEWHERE.pattern)


def refuse_bombs(content: bytes, limits: ParseLimits) -> None:
    """Inflate what pages are made of, where it could be too much at all: twice the work for every PDF is too dear.

    Raises:
        Refused: `inflates_too_much`, `too_deep`.
    """
    if len(content) * _MOST_BY_ONE_FILTER <= limits.inflated_bytes and not _TWICE_OR_ELSEWHERE.search(content):
        return
    streams = list(_streams(content, limits.nesting))
    deepest = max((filters for _, _, filters in streams), default=0)
    if deepest > limits.nesting:
        raise Refused(
            Reason.TOO_DEEP, f"A stream is deflated {deepest} times over; limits.nesting is {limits.nesting}."
        )
    budget = _Budget(limits.inflated_bytes)
    most = sum(map(_most_inflated, streams))
    for stream in streams:
        if most <= budget.left:
            return  # whatever the rest holds
        most -= _most_inflated(stream)
        start, end, filters = stream
        inflated: Iterable[bytes] = [content[start:end]]
        for _ in range(filters):
            inflated = _inflate(inflated, budget)
        for _ in inflated:
            pass  # counted as it comes out


def _streams(content: bytes, most_filters: int) -> Iterator[tuple[int, int, int]]:
    """Where streams of pages begin and end, and how many times over they are deflated, or may be."""
    end = seen = 0
    for stream in _STREAM.finditer(content):
        at, start = stream.span()
        if at < end:
            continue  # it stands within another's bytes
        if stream[1] is None and not content[max(at - _BLANKS, 0) : at].rstrip().endswith(b">>"):
            continue  # the word in a text
        dictionary = content[max(content.rfind(b"obj", seen, at), seen) : at]
        seen = start
        if b"#" in dictionary:
            dictionary = _ESCAPED.sub(lambda escape: bytes([int(escape[1], 16)]), dictionary)
        if not _NO_CONTENT.search(dictionary):
            end = content.find(b"endstream", start)
            seen = end = end if end >= 0 else len(content)
            filters = most_filters if _ELSEWHERE.search(dictionary) else len(_FLATE.findall(dictionary))
            yield start, end, filters


def _most_inflated(stream: tuple[int, int, int]) -> int:
    start, end, filters = stream
    most: int = (end - start) * _MOST_BY_ONE_FILTER**filters
    return most


class _Budget:
    """How many more bytes may come out of inflating: `left`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.left = most

    def spend(self, n: int) -> None:
        """Count bytes.

        Raises:
            Refused: `inflates_too_much`.
        """
        self.left -= n
        if self.left < 0:
            raise Refused(
                Reason.INFLATES_TOO_MUCH, f"Its pages unpack to more; limits.inflated_bytes is {self._most:,}."
            )


def _inflate(deflated: Iterable[bytes], budget: _Budget) -> Iterator[bytes]:
    """Inflate piece by piece. Encrypted and damaged bytes end it: they are the engine's verdict to name.

    Without header and checksum, since engines do not mind a wrong one.
    """
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    skip = _ZLIB_HEADER
    for piece in deflated:
        pending = piece[skip:]
        skip = 0
        while pending:
            try:
                chunk = inflater.decompress(pending, _STEP)
            except zlib.error:
                for _ in deflated:
                    pass  # what is below still counts
                return
            budget.spend(len(chunk))
            yield chunk
            pending = inflater.unconsumed_tail if chunk else b""
