"""Plain text: paragraphs as they are."""

from ingest_assets.parsing.text import Source, Text


def read(source: Source, text: Text) -> None:
    """Take the text as it is."""
    text.markdown = False
    text.add(source.text)
