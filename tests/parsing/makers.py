"""Small files of every format, made here."""

import io
import zipfile
from collections.abc import Sequence

import docx
import pptx
from pptx.util import Inches

_CT = '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE_REL = "http://schemas.openxmlformats.org/package/2006/relationships"


def zipped(files: dict[str, str | bytes]) -> bytes:
    """A zip of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return out.getvalue()


def pdf(*pages: str, image: bool = False, encrypt: bool = False) -> bytes:
    """A PDF with a line of text a page."""
    streams = [f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET".encode() if page else b"0 0 9 9 re f" for page in pages]
    if image:
        streams = [b"q 9 0 0 9 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"] * len(pages)
    return pdf_of(*streams, encrypt=encrypt)


def pdf_of(*pages: bytes, encrypt: bool = False, dictionary: bytes = b"", header: bytes = b"%PDF-1.7\n") -> bytes:
    """A PDF whose pages have these content streams, `dictionary` said of each."""
    objects = _of_pages(pages, dictionary)
    extra = b""
    if encrypt:
        objects.append(b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>" % (b"11" * 32, b"22" * 32))
        extra = b"/Encrypt %d 0 R/ID[<00><00>]" % len(objects)
    return _written(objects, header, extra)


def pdf_with_outline(pages: Sequence[str], outline: Sequence[tuple[str, int, int]], *, circular: bool = False) -> bytes:
    """A PDF whose outline has these titles, each leading to a page (from 0) on a level (from 1).

    A level's entries follow each other; those of the next one down lie in the first. The last leads to the first again
    where it is circular.
    """
    first_entry = 5 + 2 * len(pages)  # behind the outline itself
    by_level = {level: [n for n, entry in enumerate(outline) if entry[2] == level] for _, _, level in outline}
    entries = []
    for number, (title, page, level) in enumerate(outline):
        among = by_level[level]
        following = among[among.index(number) + 1 :] or (among[:1] if circular else [])
        below = by_level.get(level + 1, []) if number == among[0] else []
        parts = [f"/Title({title})/Parent 1 0 R/Dest[{4 + 2 * page} 0 R/Fit]"]
        parts += [f"/Next {first_entry + n} 0 R" for n in following[:1]]
        parts += [f"/First {first_entry + n} 0 R/Last {first_entry + n} 0 R/Count 1" for n in below[:1]]
        entries.append(f"<<{''.join(parts)}>>".encode())
    streams = [f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET".encode() for page in pages]
    top = f"<</Type/Outlines/First {first_entry} 0 R/Last {first_entry} 0 R/Count {len(outline)}>>".encode()
    return _written([*_of_pages(streams, catalog=b"/Outlines %d 0 R" % (first_entry - 1)), top, *entries])


def pdf_with_form(page: bytes, form: bytes) -> bytes:
    """A PDF of one page that may show the form `/X`."""
    fonts = b"/Font<</F1 3 0 R>>"
    return _written(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[4 0 R]/Count 1>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R/Resources<<%s/XObject<</X 6 0 R>>>>>>"
            % fonts,
            b"<</Length %d>>stream\n%s\nendstream" % (len(page), page),
            b"<</Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<<%s>>/Length %d>>stream\n%s\nendstream"
            % (fonts, len(form), form),
        ]
    )


def _of_pages(pages: Sequence[bytes], dictionary: bytes = b"", catalog: bytes = b"") -> list[bytes]:
    """The objects of a PDF: pages have the numbers 4, 6, 8 …, their streams those behind."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, page in enumerate(pages):
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
            % (5 + 2 * number),
            b"<</Length %d%s>>stream\n%s\nendstream" % (len(page), dictionary, page),
        ]
    return objects


def _written(objects: list[bytes], header: bytes = b"%PDF-1.7\n", extra: bytes = b"") -> bytes:
    """Objects as a file, with a table of where they are."""
    out, offsets = header, []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    tail = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF"
    return out + tail % (size, table, size, extra, len(out))


def word(body: str, prologue: str = "") -> bytes:
    """A Word file with this XML as its body."""
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = f'<Override PartName="/word/document.xml" ContentType="{kind}"/>'
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return zipped(
        {
            "[Content_Types].xml": f"{_CT}{rels}{types}</Types>",
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE_REL}"><Relationship Id="r1" '
            f'Type="{_REL}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<?xml version="1.0"?>{prologue}<w:document xmlns:w="{namespace}">'
            f"<w:body>{body}</w:body></w:document>",
        }
    )


def word_report() -> bytes:
    """A Word file with headings, a list and a table with merged cells."""
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_paragraph("Opening words.")
    document.add_heading("Figures", 2)
    document.add_paragraph("first item", style="List Bullet")
    table = document.add_table(2, 3)
    for row in range(2):
        for column in range(3):
            table.cell(row, column).text = f"cell {row}.{column}"
    table.cell(1, 1).merge(table.cell(1, 2)).text = "merged"
    document.add_paragraph("Closing words.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def slides() -> bytes:
    """A presentation of two slides: one with group and notes, one with a table with merged cells."""
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[5])
    first.shapes.title.text = "First slide"
    group = first.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "inside a group"
    first.notes_slide.notes_text_frame.text = "say hello"
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Second slide"
    table = second.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(2)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    table.cell(1, 0).merge(table.cell(1, 1))
    table.cell(1, 0).text = "both"
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def workbook(**sheets: list[list[str | int]]) -> bytes:
    """A workbook; words are inline strings."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    overrides = f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
    names, relations, files = "", "", {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        overrides += f'<Override PartName="/xl/worksheets/s{number}.xml" ContentType="{kind}.worksheet+xml"/>'
        names += f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>'
        relations += f'<Relationship Id="r{number}" Type="{_REL}/worksheet" Target="worksheets/s{number}.xml"/>'
        files[f"xl/worksheets/s{number}.xml"] = _sheet(rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return zipped(
        {
            "[Content_Types].xml": f"{_CT}{rels}{overrides}</Types>",
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE_REL}"><Relationship Id="r1" '
            f'Type="{_REL}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{_REL}"><sheets>{names}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE_REL}">{relations}</Relationships>',
            **files,
        }
    )


def _sheet(rows: list[list[str | int]]) -> str:
    xml = ""
    for number, row in enumerate(rows, 1):
        cells = ""
        for column, value in enumerate(row):
            place = f"{chr(65 + column)}{number}"
            if isinstance(value, int):
                cells += f'<c r="{place}"><v>{value}</v></c>'
            else:
                cells += f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        xml += f'<row r="{number}">{cells}</row>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{main}"><sheetData>{xml}</sheetData></worksheet>'


def book() -> bytes:
    """An EPUB whose spine is not in the order of its names."""
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="in/book.opf"/></container>',
            "in/book.opf": "<package><metadata><dc:title>The Book</dc:title></metadata><manifest>"
            '<item id="a" href="1.xhtml"/><item id="b" href="2.xhtml"/></manifest>'
            '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>',
            "in/1.xhtml": "<html><body><h1>Epilogue</h1><p>It ends.</p></body></html>",
            "in/2.xhtml": "<html><body><h1>Prologue</h1><p>It begins.</p></body></html>",
        }
    )


def sheets_of_open_document(*sheets: list[list[str]], extra: dict[str, str | bytes] | None = None) -> bytes:
    """An OpenDocument workbook."""
    office = "urn:oasis:names:tc:opendocument:xmlns:"
    spaces = " ".join(f'xmlns:{name}="{office}{name}:1.0"' for name in ("office", "table", "text"))
    tables = ""
    for number, rows in enumerate(sheets, 1):
        tables += f'<table:table table:name="Sheet{number}">'
        for row in rows:
            cells = "".join(
                f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
                for value in row
            )
            tables += f"<table:table-row>{cells}</table:table-row>"
        tables += "</table:table>"
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": f"<office:document-content {spaces}>{body}</office:document-content>",
            "META-INF/manifest.xml": "<manifest/>",
            **(extra or {}),
        }
    )


def mail_within(levels: int) -> bytes:
    """A message with a message in it, so many levels deep."""
    message = b"From: a@b\nSubject: innermost\n\nwords\n"
    for level in range(levels):
        boundary = b"b%d" % level
        message = (
            b"From: a@b\nSubject: level %d\nContent-Type: multipart/mixed; boundary=%s\n\n--%s\n"
            b"Content-Type: message/rfc822\n\n%s\n--%s--\n" % (level, boundary, boundary, message, boundary)
        )
    return message


def mail_of(parts: int) -> bytes:
    """A message of many small parts."""
    part = b"--x\nContent-Type: text/plain\n\nwords\n"
    return b"From: a@b\nSubject: many\nContent-Type: multipart/mixed; boundary=x\n\n" + part * parts + b"--x--\n"


def rewritten(package: bytes, member: str, more: str) -> bytes:
    """A workbook with more XML at the end of a sheet's rows."""
    with zipfile.ZipFile(io.BytesIO(package)) as file:
        files: dict[str, str | bytes] = {name: file.read(name) for name in file.namelist()}
    files[member] = bytes(files[member]).replace(b"</sheetData>", more.encode() + b"</sheetData>")  # type: ignore[arg-type]
    return zipped(files)


def ole(*streams: str) -> bytes:
    """The shell of an old Office file: its magic number and the names of its streams."""
    names = b"".join(f"{name}\0".encode("utf-16-le").ljust(128, b"\0") for name in streams)
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + names


def pdf_titled(title: bytes) -> bytes:
    """A PDF of one page with a title of its own."""
    stream = b"BT /F1 12 Tf 72 700 Td (words) Tj ET"
    return _written(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[4 0 R]/Count 1>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R/Resources<</Font<</F1 3 0 R>>>>>>",
            b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
            b"<</Title(%s)>>" % title,
        ],
        extra=b"/Info 6 0 R",
    )
