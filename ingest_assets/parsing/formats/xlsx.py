"""Excel workbooks, binary ones too."""

import re

from ingest_assets.parsing.formats.ooxml import write_drawings
from ingest_assets.parsing.formats.table import Budget
from ingest_assets.parsing.formats.workbook import write_workbook
from ingest_assets.parsing.inflate import Archive, refuse_declarations
from ingest_assets.parsing.limits import ParseLimits
from ingest_assets.parsing.text import Source, Text

_DRAWINGS = re.compile(r"xl/(?:drawings/drawing|diagrams/data)\d*\.xml")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
_ROW = re.compile(rb'<(?:\w+:)?row [^>]*?\br="(\d{1,7})"')
_COLUMN = re.compile(rb'<(?:\w+:)?c [^>]{0,40}?\br="([A-Z]{1,3})\d')
_MOST_COLUMNS = 16_384


def read(source: Source, text: Text) -> None:
    """Write every sheet that has cells, then what is written on drawings.

    Raises:
        Refused: As `write_workbook`; `inflates_too_much`.
    """
    Archive(source.content, source.limits).check(lambda name, data: _check_extent(name, data, source.limits))
    write_workbook(source, text)
    write_drawings(source, _DRAWINGS, text)


def _check_extent(name: str, sheet: bytes, limits: ParseLimits) -> None:
    """Refuse a sheet that the library could not unfold: it makes every cell between the first and the last."""
    refuse_declarations(name, sheet)
    if not _SHEET.fullmatch(name):
        return
    height = max(map(int, _ROW.findall(sheet, max(0, sheet.rfind(b"row ") - 100))), default=0)
    budget = Budget(limits.cells)
    if height * _MOST_COLUMNS > limits.cells:
        budget.check_range(height, max(map(_number, set(_COLUMN.findall(sheet))), default=0))


def _number(column: bytes) -> int:
    """A is 1, XFD is 16,384."""
    number = 0
    for letter in column:
        number = 26 * number + letter - ord("A") + 1
    return number
