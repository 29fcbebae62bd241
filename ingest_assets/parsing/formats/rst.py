"""reStructuredText: the text as it is, headings marked."""

from ingest_assets.parsing.headings import rst_headings
from ingest_assets.parsing.text import Source, Text


def read(source: Source, text: Text) -> None:
    """Take the text and mark its headings."""
    text.markdown = False
    text.headings.extend(rst_headings(text.add(source.text)))
