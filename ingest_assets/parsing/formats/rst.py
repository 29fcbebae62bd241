"""reStructuredText: the text as it is, headings marked."""

import re

from ingest_assets.parsing.headings import rst_headings
from ingest_assets.parsing.text import Source, Text

# Of the lines `Name: value` or `:name: value` that a document may begin with, as Python's PEPs do.
_FIELD_TITLE = re.compile(
    r"\s*(?:(?!:?title:):?[A-Za-z][\w -]*:[^\n]*\n(?:[ \t][^\n]*\n)*){0,30}"
    r":?title:[ \t]*([^\n]+(?:\n[ \t][^\n]+)*)",
    re.IGNORECASE,
)


def read(source: Source, text: Text) -> None:
    """Take the text, mark its headings, and take the title that its fields name."""
    text.markdown = False
    if field := _FIELD_TITLE.match(source.text):
        text.suggest_title(field[1])
    text.headings.extend(rst_headings(text.add(source.text)))
