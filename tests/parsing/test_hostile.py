"""What is hostile or broken ends in the right reason, and never in a success without text."""

import pytest

from ingest_assets.parsing.clean import clean
from ingest_assets.parsing.decode import decode
from resources.document_state.reasons import Reason

from . import makers
from .test_formats import parsed, refused, whole


def test_content_beats_name() -> None:
    """A PDF named .txt is a PDF, text named .pdf is text, JSON and HTML are known by what they are."""
    assert parsed("x.txt", makers.pdf("Hello")).media_type == "application/pdf"
    assert parsed("x.pdf", "just words").media_type == "text/plain"
    assert parsed("x.zip", makers.word_report()).media_type.endswith("wordprocessingml.document")
    assert parsed("x", "<!DOCTYPE html><html><body>hi</body></html>").media_type == "text/html"
    assert parsed("x", '{"a": 1}').media_type == "application/json"
    assert parsed("x.txt", "{not json}").media_type == "text/plain"
    assert parsed("x.docx", b"\x00" * 5000 + makers.pdf("Hello")).media_type == "application/pdf"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(50), Reason.UNSUPPORTED_TYPE),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), Reason.UNSUPPORTED_TYPE),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"),
            Reason.PASSWORD_REQUIRED,
        ),
        (makers.zipped({"../../etc/passwd": "x"}), Reason.UNSUPPORTED_TYPE),
        (b"", Reason.EMPTY_FILE),
        (b" \n\t\r\n" * 100, Reason.NO_TEXT),
        (b"\xef\xbb\xbf", Reason.NO_TEXT),
        (b"\x00\x01\x02" * 50, Reason.UNSUPPORTED_TYPE),
    ],
)
def test_what_is_no_document(content: bytes, reason: Reason) -> None:
    """Pictures, old Office files, archives and noise each have their reason."""
    assert refused("x.txt", content) is reason


def test_bombs_are_refused_before_a_library_sees_them() -> None:
    """Members are inflated and counted here, and headers are not believed."""
    bomb = makers.word("<w:p><w:r><w:t>" + "A" * 3_000_000 + "</w:t></w:r></w:p>")
    assert refused("x.docx", bomb, inflated_bytes=1_000_000) is Reason.INFLATES_TOO_MUCH
    lying = bomb.replace((3_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert refused("x.docx", lying, inflated_bytes=1_000_000) is Reason.INFLATES_TOO_MUCH
    many = makers.zipped({f"f{number}": "" for number in range(50)})
    assert refused("x.docx", many, archive_entries=40) is Reason.TOO_LARGE


def test_entities_in_office_parts_are_refused() -> None:
    """A part with a document type is malformed: no file is read, nothing expands."""
    prologue = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    assert refused("x.docx", makers.word("<w:p><w:r><w:t>&x;</w:t></w:r></w:p>", prologue)) is Reason.MALFORMED
    assert refused("x.xml", '<!DOCTYPE r [<!ENTITY x "y">]><r>&x;</r>') is Reason.MALFORMED


def test_depth_is_bounded() -> None:
    """Deep JSON and deep tables are too deep; deep HTML, which browsers show, is read."""
    assert refused("x.json", "[" * 20_000 + "]" * 20_000) is Reason.TOO_DEEP
    tables = "<w:tbl><w:tr><w:tc>" * 1000 + "<w:p/>" + "</w:tc></w:tr></w:tbl>" * 1000
    assert refused("x.docx", makers.word(tables)) is Reason.TOO_DEEP
    assert "deep words" in whole(parsed("x.html", "<div>" * 50_000 + "deep words" + "</div>" * 50_000))


def test_damaged_files_are_malformed() -> None:
    """What is cut off or no JSON says so."""
    assert refused("x.docx", makers.word_report()[:3000]) is Reason.MALFORMED
    assert refused("x.json", '{"a": ') is Reason.MALFORMED
    assert refused("x.pdf", b"%PDF-1.7 nothing else") is Reason.MALFORMED
    assert refused("x.xml", "<a><b></a>") is Reason.MALFORMED


def test_too_much_text_is_too_large() -> None:
    """The limit on characters holds for every format."""
    assert refused("x.txt", "x" * 101, text_chars=100) is Reason.TOO_LARGE


def test_odd_json_is_read() -> None:
    """Huge integers, NaN and a key written twice lose nothing."""
    text = whole(parsed("x.json", '{"n": ' + "9" * 6000 + ', "x": NaN, "k": "1", "k": "2"}'))
    assert "9" * 900 in text
    assert "x: NaN\nk: 1\nk: 2" in text


@pytest.mark.parametrize(
    ("dirty", "tidy", "kind"),
    [
        ("a\x00b", "ab", "nul"),
        ("a\x1bb\x9fc", "abc", "control"),
        ("a\ud800b", "ab", "lone_surrogate"),
        ("a\U000e0041\U000e0042b", "ab", "tag_character"),
        ("\ufeffab", "ab", "byte_order_mark"),
    ],
)
def test_unwanted_characters_go_and_are_counted(dirty: str, tidy: str, kind: str) -> None:
    """What nobody sees and what databases refuse is taken out, by kind."""
    from collections import Counter

    removed: Counter[str] = Counter()
    assert clean(dirty, removed) == tidy
    assert removed == {kind: len(dirty) - len(tidy)}


def test_line_ends_and_hyphen_breaks() -> None:
    """Every line end is a newline, a word that a PDF broke is joined, and a surrogate pair is its character."""
    from collections import Counter

    removed: Counter[str] = Counter()
    assert clean("a\r\nb\rc\x85d\u2028e\tf", removed) == "a\nb\nc\nd\ne\tf"
    assert clean("exam\x02\r\nple", removed) == "example"
    assert clean("\ud83d\ude00", removed) == "😀"
    assert not removed


@pytest.mark.parametrize(
    ("content", "text", "encoding"),
    [
        ("naïve".encode("utf-8-sig"), "naïve", "utf-8-sig"),
        ("naïve".encode("utf-16"), "naïve", "utf-16"),
        (("plain words. " * 9).encode("utf-16-le"), "plain words. " * 9, "utf-16-le"),
        (("日本語" * 30).encode()[:-1], "日本語" * 29 + "日本\ufffd", "utf-8"),
        (b"ok \xed\xa0\x80\xed\xb0\x80", "ok \ud800\udc00", "utf-8"),
    ],
)
def test_encodings(content: bytes, text: str, encoding: str) -> None:
    """Byte order marks, UTF-16 without one, and UTF-8 that is damaged are known for what they are."""
    decoded = decode(content)
    assert decoded is not None
    assert (decoded.text, decoded.encoding) == (text, encoding)


def test_a_guessed_encoding_is_recorded() -> None:
    """Bytes of an old encoding are read, and the guess is in the result."""
    document = parsed("x.txt", ("Der Käse über der Straße ist schön und größer als früher. " * 9).encode("cp1252"))
    assert "Käse" in whole(document)
    assert document.encoding
    assert any("guessed" in warning for warning in document.warnings)


def test_a_failure_names_no_path_of_this_machine() -> None:
    """The sentence is for a person elsewhere."""
    from ingest_assets.parsing.document import _one_line

    assert _one_line(OSError("cannot open '/home/ann/x.txt' for reading")) == "cannot open … for reading"
