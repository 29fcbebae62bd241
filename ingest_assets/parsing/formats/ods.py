"""OpenDocument spreadsheets."""

from ingest_assets.parsing.formats.odt import refuse_encrypted, refuse_entities_in_part
from ingest_assets.parsing.formats.workbook import write_workbook
from ingest_assets.parsing.inflate import Archive
from ingest_assets.parsing.text import Source, Text


def read(source: Source, text: Text) -> None:
    """Write every sheet that has cells.

    Raises:
        Refused: As `write_workbook`; `inflates_too_much`.
    """
    archive = Archive(source.content, source.limits)
    refuse_encrypted(archive)
    archive.check(refuse_entities_in_part)
    write_workbook(source, text)
