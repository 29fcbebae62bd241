"""What spreadsheets of every kind share: a section a sheet, a line a row."""

import datetime as dt
import io
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum

from ingest_assets.parsing.formats.table import Budget, write_rows
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason


def write_workbook(source: Source, text: Text) -> None:
    """Write every sheet that has cells. What its first one is called ("Sheet1") is no title, its own name is.

    Raises:
        Refused: `password_required`, `malformed`, `too_large`.
    """
    text.markdown = False
    text.suggest_title(PurePosixPath(source.filename).stem)
    budget = Budget(source.limits.cells)
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(source.content))
    except PasswordError as error:
        raise Refused(Reason.PASSWORD_REQUIRED, "The workbook is encrypted.") from error
    except CalamineError as error:
        raise Refused(Reason.MALFORMED, f"The workbook is damaged: {error}") from error
    try:
        for sheet in workbook.sheets_metadata:
            if sheet.typ is SheetTypeEnum.WorkSheet:
                _write_sheet(workbook, sheet.name, text, budget)
    finally:
        workbook.close()


def _write_sheet(workbook: CalamineWorkbook, name: str, text: Text, budget: Budget) -> None:
    try:
        sheet = workbook.get_sheet_by_name(name)
    except CalamineError:
        text.warn(f"The sheet {name[:50]!r} could not be read.")
        return
    if sheet.start is None:
        return
    budget.check_range(sheet.height, sheet.width)
    text.sheet(name)
    text.heading(2, name)
    write_rows(_rows(sheet), text, budget)
    text.add("\n")


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    first = sheet.start[0] + 1
    for number, row in enumerate(sheet.to_python(skip_empty_area=True), first):
        yield number, [_shown(value) for value in row]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:  # noqa: PLR2004 - as Excel shows it
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)
