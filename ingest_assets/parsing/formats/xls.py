"""Excel workbooks of before 2007."""

from ingest_assets.parsing.formats.workbook import write_workbook
from ingest_assets.parsing.text import Source, Text


def read(source: Source, text: Text) -> None:
    """Write every sheet that has cells.

    Raises:
        Refused: As `write_workbook`.
    """
    write_workbook(source, text)
