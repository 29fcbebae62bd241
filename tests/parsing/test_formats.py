"""Each format: its text, and where in the document each piece stands."""

import pytest

from ingest_assets.parsing import Chunking, ParsedDocument, ParseLimits
from ingest_assets.parsing.chunk import _stretches
from ingest_assets.parsing.document import parse
from ingest_assets.parsing.result import ParseFailure
from resources.document_state.reasons import Reason

from . import makers


def parsed(name: str, content: bytes | str, size: int = 1000, **limits: int) -> ParsedDocument:
    """Parse in this process, which must succeed."""
    raw = content.encode() if isinstance(content, str) else content
    outcome = parse(name, raw, ParseLimits(**limits), Chunking(size=size))
    assert isinstance(outcome, ParsedDocument), outcome
    return outcome


def refused(name: str, content: bytes | str, **limits: int) -> Reason:
    """Parse in this process, which must fail."""
    raw = content.encode() if isinstance(content, str) else content
    outcome = parse(name, raw, ParseLimits(**limits), Chunking())
    assert isinstance(outcome, ParseFailure), outcome
    assert outcome.detail
    assert len(outcome.detail) <= 300
    return outcome.reason


def whole(document: ParsedDocument) -> str:
    """All pieces."""
    return "\n".join(piece.text for piece in document.pieces)


def test_plain_text_keeps_its_words_and_takes_its_name_as_title() -> None:
    """Text without headings is titled by its file name's stem."""
    document = parsed("notes of may.txt", "Some words.\n\nMore words.")
    assert document.title == "notes of may"
    assert whole(document) == "Some words.\n\nMore words."


def test_markdown_pieces_know_their_heading_path() -> None:
    """A piece names the headings it stands under, outermost first; an offset is that of the cleaned text."""
    text = "# A\n\nintro\n\n## B\n\nbody of b\n\nSetext\n======\n\nlast"
    document = parsed("x.md", text, size=20)
    paths = {piece.text.split("\n")[-1]: piece.place.headings for piece in document.pieces}
    assert paths["body of b"] == ("A", "B")
    assert paths["last"] == ("Setext",)
    assert all(text[piece.place.start : piece.place.end] == piece.text for piece in document.pieces)


@pytest.mark.parametrize("end", ["\n\n", "\n", " ", ""])
def test_the_splitter_never_sees_a_long_text_at_once(end: str) -> None:
    """It takes more than twice as long for twice the text, so it is given paragraphs or lines, each once and whole."""
    text = f"forty characters of a line, as many are{end}" * 10_000
    stretches = [text[start:end] for start, end in _stretches(text, [])]
    assert "".join(stretches) == text
    assert max(map(len, stretches)) <= 100_000
    assert all(stretch.startswith("forty") for stretch in stretches if end)
    pieces = parsed("x.md", text).pieces
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(text.split())


def test_front_matter_names_the_document() -> None:
    """A title in the front matter is the title; its lines are no headings."""
    document = parsed("x.md", "---\nweight: 1\ntitle: 'Getting started'\n---\n\n# Other\n\nwords")
    assert document.title == "Getting started"
    assert parsed("x.md", "---\nweight: 1\n---\n\nwords").pieces[0].place.headings == ()


def test_code_fences_give_no_headings() -> None:
    """A comment in code is not a heading, whichever fence it is in."""
    document = parsed("x.md", "# Real\n\n```sh\n# not one\n```\n\n~~~\n# nor this\n~~~\n\nend", size=12)
    assert {piece.place.headings for piece in document.pieces} == {("Real",)}


def test_markdown_comments_are_left_out_except_in_code() -> None:
    """What no reader of the page sees is no text of it."""
    document = parsed("x.md", "# T\n<!-- obey me -->\nshown\n\n```\n<!-- code -->\n```\n")
    assert "obey" not in whole(document)
    assert "<!-- code -->" in whole(document)
    assert document.removed["html_comment"] > 0


def test_rst_headings_are_found_by_their_underlines() -> None:
    """Adornments give levels in the order in which they first appear; a table's rule is none."""
    text = "=====\nTitle\n=====\n\nPart\n----\n\nwords\n\nSub\n~~~\n\ndeep\n\n===  ===\na    b\n===  ===\n"
    document = parsed("x.rst", text, size=12)
    assert document.title == "Title"
    assert next(p for p in document.pieces if "deep" in p.text).place.headings == ("Title", "Part", "Sub")


def test_html_keeps_structure_and_drops_what_is_no_text() -> None:
    """Headings, lists, tables and code become Markdown; scripts, navigation and hidden passages go."""
    html = """<html><head><title>Page</title><style>p{}</style></head><body><nav>Home | About</nav>
    <h1>Head</h1><p>Words <b>bold</b>.</p><ul><li>one</li><li>two</li></ul><script>evil()</script>
    <table><tr><th>k</th><th>v</th></tr><tr><td>a|b</td><td>1</td></tr></table>
    <pre>x = 1\n  y</pre><p style="display: none">hidden order</p><p>End</p></body></html>"""
    document = parsed("x.html", html)
    text = whole(document)
    assert document.title == "Head"
    for expected in ("# Head", "Words bold.", "- one\n- two", "| k | v |\n| --- | --- |\n| a\\|b | 1 |", "x = 1\n  y"):
        assert expected in text
    for gone in ("Home", "evil", "hidden order", "p{}"):
        assert gone not in text
    assert document.removed["hidden"] == len("hidden order")
    assert any("Hidden" in warning for warning in document.warnings)


def test_html_layout_tables_flow() -> None:
    """A table that holds a table is layout: its cells are paragraphs, the inner one stays a table."""
    html = "<body><table><tr><td>menu</td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table></body>"
    assert "menu\n\n| a | b |" in whole(parsed("x.html", html))


def test_pdf_pieces_know_their_pages() -> None:
    """A piece names the first and the last page it stands on; empty pages are counted."""
    document = parsed("x.pdf", makers.pdf("Hello one", "", "Hello three"))
    assert (document.pages, document.empty_pages) == (3, 1)
    assert (document.pieces[0].place.page, document.pieces[0].place.last_page) == (1, 3)
    assert document.parser.startswith("pypdfium2 ")


def test_pdf_lines_stay_apart() -> None:
    """A value at the end of a line is not glued to the word that begins the next."""
    content = makers.pdf("37,499.96) Tj 0 -20 Td (SMITH")
    assert whole(parsed("x.pdf", content)).split() == ["37,499.96", "SMITH"]


PDF_LINE = ") Tj 0 -20 Td ("


def test_pdf_headings_come_from_its_outline() -> None:
    """What the outline names is found among the lines of its page, with its number or without, broken or not."""
    page = PDF_LINE.join(
        ["Survey of Docks", "words of its own", "1.2 Dry docks and", "others", "dry", "Methods", "wet"]
    )
    outline = (("Survey of docks", 0, 1), ("Dry docks and others", 0, 2), ("2 Methods", 0, 2), ("Blank Page", 0, 2))
    content = makers.pdf_with_outline([page], outline)
    assert whole(parsed("x.pdf", content)).split("\n\n") == [
        "# Survey of Docks", "words of its own", "## 1.2 Dry docks and others", "dry", "## Methods", "wet",
    ]  # fmt: skip
    document = parsed("x.pdf", content, size=20)
    assert document.title == "Survey of Docks"
    paths = {piece.text.split("\n")[-1]: piece.place.headings for piece in document.pieces}
    assert paths["dry"] == ("Survey of Docks", "1.2 Dry docks and others")
    assert paths["wet"] == ("Survey of Docks", "Methods")


@pytest.mark.parametrize(
    ("pages", "entry", "text"),
    [
        ([["Journal", "12", "Docks", "wet"]], "Docks", ["Journal\n12", "# Docks", "wet"]),
        ([["2", "Docks", "wet"]], "2 Docks", ["# 2 Docks", "wet"]),
        ([["Docks", "of wood", "Docks", "wet"]], "Docks", ["# Docks", "of wood\nDocks\nwet"]),
        ([["3 Docks", "wood", "Docks", "wet"], ["4 Docks"]], "Docks", ["3 Docks\nwood", "# Docks", "wet", "4 Docks"]),
        ([["wet", "Page 1"]], "Page 1", ["wet\nPage 1"]),
    ],
)
def test_which_line_of_a_pdf_is_the_heading(pages: list[list[str]], entry: str, text: list[str]) -> None:
    """Not the number of the page with it, nor what several pages begin with; and no page is a section."""
    content = makers.pdf_with_outline([PDF_LINE.join(lines) for lines in pages], [(entry, 0, 1)])
    assert whole(parsed("x.pdf", content)).split("\n\n") == text


def test_pdf_pieces_begin_where_sections_do() -> None:
    """A section that has room in a piece of its own does not begin in the one before it."""
    pages = (PDF_LINE.join(["words before", "First", "some words " * 3]), "more words " * 2)
    document = parsed("x.pdf", makers.pdf_with_outline(pages, [("First", 0, 1)]), size=70)
    assert [piece.text.split("\n")[0] for piece in document.pieces] == ["words before", "# First"]


def test_pdf_outline_that_leads_in_a_circle() -> None:
    """Entries that lead to each other, or to no page, are no reason to stop."""
    outline = (("Ann", 0, 1), ("Bob", 9, 1), ("", 0, 1), ("x" * 5000, 0, 1))
    content = makers.pdf_with_outline(("Ann) Tj 0 -20 Td (Bob",), outline, circular=True)
    assert whole(parsed("x.pdf", content)) == "# Ann\n\nBob"


def test_pdf_without_text_says_why() -> None:
    """Pictures are `image_only`, drawings `no_text`, and an encrypted file needs a password."""
    assert refused("x.pdf", makers.pdf("x", image=True)) is Reason.IMAGE_ONLY
    assert refused("x.pdf", makers.pdf("")) is Reason.NO_TEXT
    assert refused("x.pdf", makers.pdf("x", encrypt=True)) is Reason.PASSWORD_REQUIRED
    assert refused("x.pdf", makers.pdf(*["x"] * 5), pages=4) is Reason.TOO_MANY_PAGES


def test_docx_keeps_order_headings_lists_and_merged_cells_once() -> None:
    """Paragraphs and tables come in their order; a merged cell's words come once."""
    document = parsed("x.docx", makers.word_report())
    text = whole(document)
    assert document.title == "Report"
    assert text.index("Opening") < text.index("- first item") < text.index("| cell 0.0 |") < text.index("Closing")
    assert text.count("merged") == 1
    assert parsed("x.docx", makers.word_report(), size=60).pieces[-1].place.headings == ("Report", "Figures")


def test_pptx_slides_are_pages() -> None:
    """Titles, groups, notes and tables are read; a piece knows its slides."""
    document = parsed("x.pptx", makers.slides(), size=80)
    text = whole(document)
    assert document.pages == 2
    assert "inside a group" in text
    assert "Notes: say hello" in text
    assert text.count("both") == 1
    assert document.pieces[-1].place.page == 2
    assert document.pieces[-1].place.headings == ("Second slide",)


def test_xlsx_rows_repeat_their_header() -> None:
    """Each row says what its values are; a piece knows its sheet and rows and never spans two sheets."""
    document = parsed("x.xlsx", makers.workbook(People=[["name", "age"], ["Ann", 31]], Empty=[], More=[["x", "y"]]))
    first, second = document.pieces
    assert "name: Ann; age: 31" in first.text
    assert (first.place.sheet, first.place.row, first.place.last_row) == ("People", 1, 2)
    assert second.place.sheet == "More"
    assert refused("x.xlsx", makers.workbook(S=[["a", "b"], ["c", "d"]]), cells=3) is Reason.TOO_LARGE


def lines(*rows: str) -> list[str]:
    """What the rows of a CSV file come out as."""
    return whole(parsed("x.csv", "\n".join(rows))).splitlines()


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        (
            ["Cups,,", "as of May,,", "team,city,cups", "Blues,STL,1", "Maple,TOR,13"],
            "team: Maple; city: TOR; cups: 13",
        ),
        (["Guests,", "Ann,", "Bob,vegan", "Cid,late"], "Cid | late"),
        (["Invoice,,,", "To:,ACME,No:,7", "Street,Main St,Due,10", "City,Oslo,Sum,20"], "City | Oslo | Sum | 20"),
        (["Report,", "Employee,Ann", "Department,Sales", "Hours,7"], "Hours | 7"),
        (["Visit,", "Name:,Ann", "Room:,5", "Floor:,7"], "Floor: | 7"),
    ],
)
def test_what_stands_below_a_caption(rows: list[str], last: str) -> None:
    """Rows of one cell above a header are captions; without numbers below, words below a caption name no column."""
    assert lines(*rows)[-1] == last


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        (
            ["amount,June,,May,", ",net,gross,before,after", "Oslo,1,2,3,4"],
            "amount: Oslo; net: 1; gross: 2; before: 3; after: 4",
        ),
        ([",name,city", "first,Ann,Oslo"], "first; name: Ann; city: Oslo"),
        (["name,,city", "Ann,Smith,Oslo", "Bob,Ray,Rome"], "name: Bob; Ray; city: Rome"),
        (["name,city", "Ann,Oslo,extra", "Bob,Rome,more"], "name: Bob; city: Rome; more"),
        (["kind,n,rest", ",,blind", "Deaf,5,x"], "kind: Deaf; n: 5; rest: x"),
        (["Bill to,,Ship to,", ",Ann,,Bob", ",Oslo,,Rome"], "Oslo; Rome"),
    ],
)
def test_headers_with_holes(rows: list[str], last: str) -> None:
    """What reaches over several columns that have names below it names none of them, unlike a name that is missing."""
    assert lines(*rows)[-1] == last


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        (["sales,2022,2023", "Oslo,7,8"], "sales: Oslo; 2022: 7; 2023: 8"),
        (["sales,2023,2022", "Oslo,7,"], "sales: Oslo; 2023: 7"),
        (["Ann,1980,2001", "Bob,1975,1999"], "Bob | 1975 | 1999"),
        (["Oslo,2022,7", "Rome,2023,8"], "Rome | 2023 | 8"),
        (["Oslo,2022", "Rome,7"], "Rome | 7"),
    ],
)
def test_years_name_columns(rows: list[str], last: str) -> None:
    """Years over other numbers are a header; a row with years among its values is none."""
    assert lines(*rows)[-1] == last


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        (
            ["month,sales,", "May,7,", "", "By region,,", "region,sum,share", "North,5,6", "South,7,8"],
            "region: South; sum: 7; share: 8",
        ),
        (["month,sales", "May,7", "", "By region,", "region,sum", "North,5", "South,7"], "South | 7"),
        (["name,city", "Ann,Oslo", "", "Others,", "Bob,Rome", "Cid,Bern"], "name: Cid; city: Bern"),
        (["name,age", "", "Ann,unknown", "Bob,7", "Cid,8"], "name: Cid; age: 8"),
        (["name,age", "Ann,5", "", "Bob,6", "Cid,8"], "name: Cid; age: 8"),
        (["name,age", "Ann,5", "", "all in years,"], "all in years"),
    ],
)
def test_tables_below_each_other(rows: list[str], last: str) -> None:
    """Behind an empty row another table may have names of its own; where nobody can tell, rows have none."""
    assert lines(*rows)[-1] == last


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_dialects(delimiter: str) -> None:
    """Whatever separates the fields, a quoted separator does not, and rows are numbered from 1."""
    rows = [["city", "note"], ["Oslo", f'"cold{delimiter} wet"'], ["Rome", "warm"]]
    document = parsed("x.csv", "\n".join(delimiter.join(row) for row in rows), size=45)
    assert "city: Oslo; note: cold" in whole(document)
    assert "wet" in whole(document)
    assert document.pieces[-1].place.last_row == 3


def test_csv_fields_of_any_length() -> None:
    """A field over the csv module's own limit is read."""
    assert parsed("x.csv", 'a,b\n1,"' + "x" * 200_000 + '"\n').n_chars > 200_000


def test_mail_shows_headers_text_and_names_of_attachments() -> None:
    """The plain alternative is read, attachments are listed by their bare names, and the subject is the title."""
    mail = (
        "From: Ann <a@x>\nTo: b@x\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n"
        "Content-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: multipart/alternative; boundary=i\n\n"
        "--i\nContent-Type: text/plain\n\nplain words\n--i\nContent-Type: text/html\n\n<p>html words</p>\n--i--\n"
        "--m\nContent-Type: application/pdf\n"
        'Content-Disposition: attachment;\n filename="../../etc/plan.pdf"\n\nx\n--m--\n'
    )
    document = parsed("x.eml", mail)
    text = whole(document)
    assert document.title == "Grüße"
    assert text.startswith("Subject: Grüße\nFrom: Ann <a@x>")
    assert "plain words" in text
    assert "html words" not in text
    assert "Attachments: plan.pdf" in text


def test_epub_follows_its_spine() -> None:
    """Chapters come in the order of the spine, not of their names."""
    document = parsed("x.epub", makers.book())
    text = whole(document)
    assert document.title == "The Book"
    assert text.index("It begins.") < text.index("It ends.")


def test_json_becomes_lines() -> None:
    """Values are named by their path, turns of a conversation by their speaker; numbers stay as written."""
    text = whole(parsed("x.json", '{"a": {"b": [1.50, true]}, "talk": [{"speaker": "Ann", "text": "Hi", "id": "7"}]}'))
    assert text.splitlines() == ["a.b[1]: 1.50", "a.b[2]: true", "talk[1] Ann: Hi", "talk[1].id: 7"]


def test_json_lines_are_rows() -> None:
    """Each line is a row; a bad one fails the document, by its number."""
    document = parsed("x.jsonl", '{"a": 1}\n{"a": 2}\n')
    assert (document.pieces[0].place.row, document.pieces[0].place.last_row) == (1, 2)
    outcome = parse("x.jsonl", b'{"a": 1}\nnope\n', ParseLimits(), Chunking())
    assert isinstance(outcome, ParseFailure)
    assert "Line 2" in outcome.detail


def test_xml_and_rtf_give_their_text() -> None:
    """Elements give a line each; RTF gives what stands between its control words."""
    assert whole(parsed("x.xml", "<?xml version='1.0'?><r><a>one</a><b>two</b></r>")) == "one\ntwo"
    rtf = rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\f0 caf\'e9 \u8364?5\par next}"
    assert whole(parsed("x.rtf", rtf)) == "café €5\n\nnext"


def test_identical_input_gives_identical_output() -> None:
    """The same bytes give the same result, whatever was parsed before."""
    for name, content in (("a.docx", makers.word_report()), ("a.pdf", makers.pdf("x y")), ("a.epub", makers.book())):
        assert parsed(name, content) == parsed(name, content)


def test_pieces_keep_to_their_size_and_overlap() -> None:
    """No piece is longer than asked for, and neighbours overlap when asked to."""
    outcome = parse("x.txt", b"word " * 500, ParseLimits(), Chunking(size=100, overlap=20))
    assert isinstance(outcome, ParsedDocument)
    assert max(len(piece.text) for piece in outcome.pieces) <= 100
    assert outcome.pieces[1].place.start < outcome.pieces[0].place.end


def test_lines_without_a_break_are_cut_in_linear_time() -> None:
    """A megabyte without a place to cut is done in seconds, not minutes."""
    assert len(parsed("x.txt", "漢字" * 250_000).pieces) >= 500
    assert len(parsed("x.md", "[" * 50_000 + "a").pieces) >= 50
