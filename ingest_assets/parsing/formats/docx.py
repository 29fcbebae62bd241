"""Word: paragraphs, headings, lists and tables in their order; text boxes, notes and comments too."""

import io
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from docx.opc.part import PartFactory
from docx.oxml.parser import parse_xml
from docx.package import Package
from docx.parts.document import DocumentPart

from ingest_assets.parsing.decode import decode
from ingest_assets.parsing.formats.ooxml import accepted, one_line, opened, write_drawings, write_table
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_HEADING_STYLE = re.compile(r"(?:heading|überschrift|titre|título) ?(\d)$|(title)$", re.IGNORECASE)
_DRAWINGS = re.compile(r"word/(?:diagrams/data|charts/chart)\d*\.xml")
_NOTES = ("footnotes", "endnotes", "comments")
_DEEPEST = 20  # tables and boxes within each other
_WITHOUT_LEVEL = 9
_SKIPPED = frozenset([_W + "del", _W + "moveFrom", _W + "instrText", _W + "delText", _W + "pPr", _MC + "Fallback"])
_BOX = _W + "txbxContent"
_WRAPPERS = frozenset(_W + tag for tag in ("sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml"))
_CHARACTERS = {_W + "tab": "\t", _W + "br": "\n", _W + "cr": "\n", _W + "noBreakHyphen": "-"}

# python-docx opens plain documents only; macro-enabled ones and templates have the same parts.
for _kind in ("document.macroEnabled", "template.macroEnabledTemplate"):
    PartFactory.part_type_for[f"application/vnd.ms-word.{_kind}.main+xml"] = DocumentPart
PartFactory.part_type_for["application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml"] = (
    DocumentPart
)


def read(source: Source, text: Text) -> None:
    """Write the body, then notes and comments.

    Raises:
        Refused: `malformed`, `too_deep`, `too_large`, `inflates_too_much`.
    """
    content = accepted(source)
    package = opened(lambda: Package.open(io.BytesIO(content)))
    part = opened(lambda: package.main_document_part)
    if not isinstance(part, DocumentPart):
        raise Refused(Reason.MALFORMED, "It has no Word document in it.")
    text.suggest_title(part.core_properties.title)
    body = _Body(text, _heading_levels(part), _imported(part))
    body.write(part.element.body, 0)
    for other in package.iter_parts():
        name = str(other.partname).rpartition("/")[2].removesuffix(".xml")
        if name in _NOTES:
            for note in opened(partial(parse_xml, other.blob)):
                body.write(note, 0)
    write_drawings(source, _DRAWINGS, text)


def _heading_levels(part: DocumentPart) -> dict[str, int]:
    """Style id → heading level, by the style's name or its outline level."""
    levels = {}
    for style in part.styles.element.style_lst:
        found = _HEADING_STYLE.match(style.name_val or "")
        outline = style.find(f"{_W}pPr/{_W}outlineLvl")
        if found:
            levels[style.styleId] = int(found[1]) if found[1] else 1
        elif outline is not None:
            levels[style.styleId] = _outline_level(outline)
    return levels


def _imported(part: DocumentPart) -> dict[str, bytes]:
    """Relation → HTML that Word would take in when it opens the document (`altChunk`)."""
    return {
        key: relation.target_part.blob
        for key, relation in part.rels.items()
        if not relation.is_external and "html" in relation.target_part.content_type
    }


def _outline_level(outline: Any) -> int:
    """1 to 9; Word counts from 0, and 9 means body text."""
    value = outline.get(_W + "val", "9")
    level = int(value) + 1 if value.isdigit() else 0
    return level if level <= _WITHOUT_LEVEL else 0


class _Body:
    def __init__(self, text: Text, levels: dict[str, int], imported: dict[str, bytes]) -> None:
        self._text = text
        self._levels = levels
        self._imported = imported
        self._in_list = False

    def write(self, element: Any, depth: int) -> None:
        """Write the blocks directly in an element."""
        if depth > _DEEPEST:
            raise Refused(Reason.TOO_DEEP, f"Its tables are nested more than {_DEEPEST} deep.")
        for child in element:
            if child.tag == _W + "p":
                self._write_paragraph(child, depth)
            elif child.tag == _W + "tbl":
                self._write_table(child, depth)
            elif child.tag in _WRAPPERS:
                self.write(child, depth + 1)
            elif child.tag == _W + "altChunk":
                self._write_import(child.get(_R + "id"))

    def _write_import(self, relation: str) -> None:
        from ingest_assets.parsing.formats.html import write_html

        decoded = decode(self._imported.get(relation, b""))
        if decoded is not None:
            write_html(decoded.text, self._text)

    def _write_paragraph(self, paragraph: Any, depth: int) -> None:
        words = "".join(_words(paragraph)).strip()
        level = self._level(paragraph)
        if words and level:
            self._end_list()
            self._text.heading(level, words)
        elif words and self._is_item(paragraph):
            self._text.add(f"- {words}\n")
            self._in_list = True
        elif words:
            self._end_list()
            self._text.block(words)
        for box in _boxes(paragraph):
            self.write(box, depth + 1)

    def _end_list(self) -> None:
        if self._in_list:
            self._text.add("\n")
            self._in_list = False

    def _is_item(self, paragraph: Any) -> bool:
        properties = paragraph.find(_W + "pPr")
        if properties is None:
            return False
        style = properties.find(_W + "pStyle")
        named = style is not None and (style.get(_W + "val") or "").startswith("List")
        return named or properties.find(_W + "numPr") is not None

    def _level(self, paragraph: Any) -> int:
        properties = paragraph.find(_W + "pPr")
        if properties is None:
            return 0
        outline = properties.find(_W + "outlineLvl")
        if outline is not None:
            return _outline_level(outline)
        style = properties.find(_W + "pStyle")
        return self._levels.get(style.get(_W + "val"), 0) if style is not None else 0

    def _write_table(self, table: Any, depth: int) -> None:
        rows = [list(_within(row, "tc")) for row in _within(table, "tr")]
        if all(len(row) == 1 for row in rows):
            for row in rows:
                self.write(row[0], depth + 1)
            return
        self._end_list()
        write_table(([cell for tc in row for cell in _cells(tc)] for row in rows), self._text)


def _within(element: Any, tag: str) -> Iterator[Any]:
    """Children of a kind, also where content controls wrap them."""
    for child in element:
        if child.tag == _W + tag:
            yield child
        elif child.tag in _WRAPPERS:
            yield from _within(child, tag)


def _cells(cell: Any) -> Iterator[str]:
    """A cell's words once, and nothing for the columns and rows it is merged over."""
    merged = cell.find(f"{_W}tcPr/{_W}vMerge")
    span = cell.find(f"{_W}tcPr/{_W}gridSpan")
    continues = merged is not None and merged.get(_W + "val") != "restart"
    yield "" if continues else one_line(" ".join("".join(_words(paragraph)) for paragraph in cell.iter(_W + "p")))
    width = span.get(_W + "val", "1") if span is not None else "1"
    for _ in range(min(int(width), 100) - 1 if width.isdigit() else 0):
        yield ""


def _words(element: Any) -> Iterator[str]:
    """The text of a paragraph without what was deleted and without its text boxes."""
    for child in element:
        if child.tag in {_W + "t", _M + "t"}:
            yield child.text or ""
        elif child.tag in _CHARACTERS:
            yield _CHARACTERS[child.tag]
        elif child.tag not in _SKIPPED and child.tag != _BOX and child.tag != _W + "p":
            yield from _words(child)


def _boxes(element: Any) -> Iterator[Any]:
    """Text boxes of a paragraph; the copy for old versions of Word is not read."""
    for child in element:
        if child.tag == _BOX:
            yield child
        elif child.tag not in _SKIPPED:
            yield from _boxes(child)
