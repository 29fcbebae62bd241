"""Each limit has a file that trips it, names itself, and is enforced within two seconds, in the real child."""

import time
import zlib

import pytest

from ingest_assets.parsing import Chunking, ParseFailure, ParseLimits, ParserPool
from resources.document_state.reasons import Reason

from . import makers

MIB = 2**20
WORD = makers.word("<w:p><w:r><w:t>" + "A" * 3_000_000 + "</w:t></w:r></w:p>")
SLIDES = makers.slides()
TWO_PAGES = makers.pdf("one", "two")
DEFLATED = b"/Filter/FlateDecode"


def deflated(data: bytes, times: int = 1) -> bytes:
    """Data deflated so many times over."""
    for _ in range(times):
        data = zlib.compress(data, 9)
    return data


def wide_sheet() -> bytes:
    """Two cells, in the corners of the largest sheet there is."""
    rows = makers.workbook(S=[["1"]])
    return makers.rewritten(rows, "xl/worksheets/s1.xml", '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>')


@pytest.mark.parametrize(
    ("limit", "value", "name", "content", "reason"),
    [
        ("memory_bytes", 128 * MIB, "x.json", b"[" + b"[1]," * 3_000_000 + b"[1]]", Reason.OUT_OF_MEMORY),
        ("text_chars", 100, "x.txt", b"word " * 21, Reason.TOO_LARGE),
        ("text_chars", 100, "x.pdf", makers.pdf("word " * 21), Reason.TOO_LARGE),
        ("inflated_bytes", MIB, "x.docx", WORD, Reason.INFLATES_TOO_MUCH),
        ("inflated_bytes", MIB, "x.ods", makers.sheets_of_open_document([["a" * 2 * MIB]]), Reason.INFLATES_TOO_MUCH),
        (
            "inflated_bytes",
            MIB,
            "x.pdf",
            makers.pdf_of(deflated(b"\n" * 3 * MIB), dictionary=DEFLATED),
            Reason.INFLATES_TOO_MUCH,
        ),
        ("archive_entries", 40, "x.docx", makers.zipped({f"f{n}": "" for n in range(50)}), Reason.TOO_LARGE),
        ("archive_entries", 40, "x.eml", makers.mail_of(50), Reason.TOO_LARGE),
        ("nesting", 3, "x.eml", makers.mail_within(4), Reason.TOO_DEEP),
        (
            "nesting",
            3,
            "x.pdf",
            makers.pdf_of(deflated(b"BT ET", 4), dictionary=b"/Filter[/Fl/Fl/Fl/Fl]"),
            Reason.TOO_DEEP,
        ),
        ("pages", 1, "x.pdf", TWO_PAGES, Reason.TOO_MANY_PAGES),
        ("pages", 1, "x.pptx", SLIDES, Reason.TOO_MANY_PAGES),
        ("pages", 1, "x.epub", makers.book(), Reason.TOO_MANY_PAGES),
        ("cells", 5, "x.csv", b"a,b,c\n1,2,3\n", Reason.TOO_LARGE),
        ("cells", 5, "x.tsv", b"a\tb\tc\n1\t2\t3\n", Reason.TOO_LARGE),
        ("cells", 5, "x.xlsx", makers.workbook(S=[["a", "b", "c"], [1, 2, 3]]), Reason.TOO_LARGE),
        ("cells", 5, "x.ods", makers.sheets_of_open_document([["a", "b", "c"], ["1", "2", "3"]]), Reason.TOO_LARGE),
        ("cells", 1_000_000, "x.xlsx", wide_sheet(), Reason.TOO_LARGE),
    ],
)  # fmt: skip
def test_a_file_over_a_limit(limit: str, value: int, name: str, content: bytes, reason: Reason) -> None:
    """The document ends with the limit's reason, in time, and its sentence names the setting to change."""
    check_limit(limit, value, name, content, reason)


def test_a_bomb_in_a_bomb() -> None:
    """The same for 300 MB that were deflated twice."""
    bomb = deflated(bytes(300 * MIB), 2)  # takes seconds, which is why it is not in the table
    content = makers.pdf_of(bomb, dictionary=b"/Filter[/FlateDecode /FlateDecode]")
    check_limit("inflated_bytes", 256 * MIB, "x.pdf", content, Reason.INFLATES_TOO_MUCH)


def check_limit(limit: str, value: int, name: str, content: bytes, reason: Reason) -> None:
    """Parse a file that is over a limit."""
    with ParserPool(1, ParseLimits(**{limit: value}), Chunking()) as pool:  # type: ignore[arg-type]
        pool.parse("warm.txt", b"words")
        begun = time.process_time(), time.monotonic()
        outcome = pool.parse(name, content)
        taken = time.monotonic() - begun[1]
    assert isinstance(outcome, ParseFailure), outcome
    assert outcome.reason is reason
    assert f"limits.{limit} is" in outcome.detail
    assert taken < 10  # two seconds on a machine that does nothing else


def test_a_document_that_takes_too_long() -> None:
    """It ends at the limit of wall time, and the next one is not held up."""
    hostile = Chunking(splitter="tests.parsing.splitters:hostile")
    with ParserPool(1, ParseLimits(wall_seconds=1), hostile) as pool:
        pool.parse("warm.txt", b"words")
        begun = time.monotonic()
        outcome = pool.parse("x.txt", b"HANG")
        taken = time.monotonic() - begun
    assert isinstance(outcome, ParseFailure)
    assert outcome.reason is Reason.TIMED_OUT
    assert "limits.wall_seconds is 1" in outcome.detail
    assert 1 <= taken < 10  # three at the most on a machine that does nothing else


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.eml", makers.mail_within(3)),
        ("x.pdf", makers.pdf_of(deflated(b"BT /F1 9 Tf 9 9 Td (words) Tj ET"), dictionary=DEFLATED)),
        ("x.docx", makers.word_report()),
        ("x.ods", makers.sheets_of_open_document([["a", "b"]])),
    ],
)
def test_what_is_within_the_limits_is_read(name: str, content: bytes) -> None:
    """A file of the same kind that no limit forbids is read."""
    with ParserPool(1, ParseLimits(), Chunking()) as pool:
        assert not isinstance(pool.parse(name, content), ParseFailure)
