"""What is hostile or broken ends in the right reason, and never in a success without text."""

import pytest

from ingest_assets.parsing import ParseFailure, ParseLimits
from ingest_assets.parsing.clean import clean
from ingest_assets.parsing.decode import decode
from ingest_assets.parsing.unpack import unpack
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
        (makers.zipped({"../../etc/passwd": "x"}), Reason.ARCHIVE),
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


def test_what_gives_no_order_of_reading_is_malformed_or_read_as_it_is() -> None:
    """A book that names no chapters is damaged; a mail whose boundary is missing is read as the text that it holds."""
    book = {"mimetype": "application/epub+zip", "META-INF/container.xml": '<rootfile full-path="b.opf"/>'}
    assert refused("x.epub", makers.zipped({**book, "b.opf": "<package/>", "a.xhtml": "words"})) is Reason.MALFORMED
    mail = "From: a@b\nTo: c@d\nContent-Type: multipart/mixed\n\nThe words of a broken mail."
    assert "The words of a broken mail." in whole(parsed("x.eml", mail))


def test_a_mail_too_deep_to_open() -> None:
    """Opened for its attachments, it ends as it does when it is read."""
    mail = b"Subject: innermost\n\nwords"
    for _ in range(1500):
        mail = b"From: a@b\nContent-Type: message/rfc822\n\n" + mail
    found = unpack("x.eml", mail, 0, ParseLimits())
    assert isinstance(found, ParseFailure)
    assert found.reason is refused("x.eml", mail) is Reason.TOO_DEEP


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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.txt", "_" * 80 + "\n" + "-" * 80 + "\n..."),
        ("x.json", '["\\ud800"]'),
        ("x.json", '{"a": "", "b": null, "c": "\\u0000"}'),
        ("x.csv", ",,,\n,,,\n"),
        ("x.html", "<html><body><p>***</p></body></html>"),
        ("x.html", "<html><body><script>var words = 1</script></body></html>"),
        ("x.xml", "<a><b/> <c/></a>"),
        ("x.md", "<!-- nothing but a comment -->"),
        ("x.docx", makers.word("<w:p/>")),
        ("x.xlsx", makers.workbook(S=[])),
        ("x.ods", makers.sheets_of_open_document([])),
    ],
)
def test_noise_is_no_text(name: str, content: str | bytes) -> None:
    """Without a letter or digit of its own, a document of any format ends as `no_text`, never as a success."""
    assert refused(name, content) is Reason.NO_TEXT


@pytest.mark.parametrize(
    "content",
    [
        b"%!PS-Adobe-3.0\n(words) show\n",
        b"Words of a code page \xe9\xe8 and then \x00\x00 bytes",
        b"SQLite format 3\x00" + bytes(100),
        b"RIFF\x00\x00\x00\x00WAVE" + bytes(100),
        b"\x28\xb5\x2f\xfd" + bytes(100),
        makers.ole("WordDocument"),
        makers.ole("WordDocument", "Workbook"),
        makers.ole("__properties_version1.0"),
        makers.ole("PowerPoint Document"),
    ],
)
def test_what_no_parser_reads_is_not_taken_for_text(content: bytes) -> None:
    """Programs for printers, databases, sounds and old Office files, also with a workbook in them, are unsupported."""
    assert refused("x.txt", content) is Reason.UNSUPPORTED_TYPE


def test_a_damaged_old_workbook_is_malformed() -> None:
    """What says it is a workbook of before 2007 and is none, is damaged."""
    assert refused("x.xls", makers.ole("Workbook")) is Reason.MALFORMED


def test_a_short_western_text_is_not_taken_for_dos() -> None:
    """Few accents among ASCII are Windows' Western European; other scripts are still detected."""
    text = "naïve café “quoted”"
    assert decode(text.encode("cp1252")) == (text, "cp1252", "The encoding is not declared; cp1252 was guessed.")
    for encoding, text in (("cp1251", "Привет, как дела? "), ("cp932", "日本語のテキストです。")):
        decoded = decode((text * 6).encode(encoding))
        assert decoded is not None
        assert decoded.text == text * 6


def test_declared_encodings_that_are_not_believed() -> None:
    """A codec that makes markup of letters is not used, whatever a page says of itself."""
    page = '<html><meta charset="utf-7"><body>+ADw-script+AD4-alert(1)+ADw-/script+AD4-</body></html>'
    assert "+ADw-" in whole(parsed("x.html", page))


def test_xml_in_any_encoding_is_read() -> None:
    """The encoding that XML declares is heard, also one its parser does not know; its own entities are refused."""
    text = '<?xml version="1.0" encoding="gb2312"?><a>中文</a>'
    assert whole(parsed("x.xml", text.encode("gb2312"))) == "中文"
    assert whole(parsed("x.xml", '<?xml version="1.0" encoding="utf-16"?><a>wide</a>'.encode("utf-16"))) == "wide"
    assert parsed("x", '<!-- c --><r:a xmlns:r="urn:r">words</r:a>').media_type == "application/xml"
    attack = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>'
    assert refused("x.xml", attack.encode("utf-16")) is Reason.MALFORMED
    assert refused("x.svg", '<!DOCTYPE svg [<!ENTITY x SYSTEM "http://x/">]><svg>&x;</svg>') is Reason.MALFORMED


def test_an_open_document_with_macros_is_read() -> None:
    """A part with a document type, as macros have, is harmless; one with entities is not."""
    rows = [["name", "value"]]
    harmless = {"Basic/script-lc.xml": '<!DOCTYPE library:libraries PUBLIC "-//x//EN" "libraries.dtd"><a/>'}
    assert "name" in whole(parsed("x.ods", makers.sheets_of_open_document(rows, extra=harmless)))
    attack = {"Basic/script-lc.xml": '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'}
    assert refused("x.ods", makers.sheets_of_open_document(rows, extra=attack)) is Reason.MALFORMED
    secret = {"META-INF/manifest.xml": "<manifest><encryption-data/></manifest>"}
    assert refused("x.ods", makers.sheets_of_open_document(rows, extra=secret)) is Reason.PASSWORD_REQUIRED


def test_direction_marks_stay_and_are_told() -> None:
    """Characters that change the direction of text are part of it, and a person is told of them."""
    document = parsed("x.txt", "price \u202e0001\u202c")
    assert whole(document) == "price \u202e0001\u202c"
    assert any("2 characters that change the direction" in warning for warning in document.warnings)


def test_what_was_removed_is_told() -> None:
    """The warning counts each kind."""
    document = parsed("x.txt", "total\U000e0041\U000e0042 is\x00 ten")
    assert document.removed == {"nul": 1, "tag_character": 2}
    assert document.warnings == ["Left out, in characters: nul 1, tag character 2."]


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="display: none">SECRET</p>',
        '<p style="visibility:hidden">SECRET</p>',
        '<span style="font-size:0">SECRET</span>',
        '<span style="font-size:0.0px">SECRET</span>',
        '<span style="opacity:0">SECRET</span>',
        '<span style="color:transparent">SECRET</span>',
        '<div style="position:absolute; left:-9999px">SECRET</div>',
        "<p hidden>SECRET</p>",
        "<style>/* x */ .note, #other > i { display:none }</style><p class='a note'>SECRET</p>",
        "<style>@media print { p { color: red } } div.x b { opacity: 0 }</style><div class=x><b>SECRET</b></div>",
    ],
)
def test_what_a_page_hides_is_left_out(hidden: str) -> None:
    """Elements that attributes or the page's own style sheets hide are no text, and are counted."""
    document = parsed("x.html", f"<html><body><p>Seen.</p>{hidden}</body></html>")
    assert whole(document) == "Seen."
    assert document.removed["hidden"] == len("SECRET")


@pytest.mark.parametrize(
    "style",
    [
        "@media print { p { display: none } }",
        "p:hover { display: none }",
        "body { display: none }",
        "p { font-size: 0.9em; opacity: 0.5; left: -10px; background-color: transparent }",
        "p { display: none",
        "}}}} p {{{ display:none",
    ],
)
def test_what_a_page_may_show_stays(style: str) -> None:
    """Rules for print, for a state, for the whole page or without sense hide nothing."""
    assert whole(parsed("x.html", f"<html><style>{style}</style><body><p>Seen.</p></body></html>")) == "Seen."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "x.eml",
            'From: a@b\nSubject: s\nContent-Type: multipart/encrypted; boundary="x"\n\n--x\n\nVersion: 1\n--x--\n',
        ),
        (
            "x.eml",
            "From: a@b\nSubject: s\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIAGCSqGSIb3\n",
        ),
        ("x.txt", "-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n"),
    ],
)
def test_encrypted_mail_and_text(name: str, content: str) -> None:
    """What is encrypted as a whole needs a person, though its headers could be read."""
    assert refused(name, content) is Reason.PASSWORD_REQUIRED


def test_a_title_longer_than_any_title() -> None:
    """A PDF's own title is taken if it is one, and a monster of a title is left."""
    assert parsed("name.pdf", makers.pdf_titled(b"A title")).title == "A title"
    assert parsed("name.pdf", makers.pdf_titled(b"A" * 5000)).title == "name"
