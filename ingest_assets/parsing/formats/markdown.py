"""Markdown: the text as it is, comments left out, headings marked."""

import re

from ingest_assets.parsing.headings import markdown_headings
from ingest_assets.parsing.text import Source, Text

# A fenced block is matched first, so that a comment shown as code stays.
_FENCE_OR_COMMENT = re.compile(r"(^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\2)|<!--(?:.*?)-->", re.DOTALL | re.MULTILINE)


def read(source: Source, text: Text) -> None:
    """Take the text, without the comments that no reader sees, and mark its headings."""
    whole = source.text
    if "<!--" in whole and "-->" in whole:
        whole = _FENCE_OR_COMMENT.sub(lambda match: match[1] or "", whole)
        text.removed["html_comment"] += len(source.text) - len(whole)
    whole = text.add(whole)
    text.headings.extend(markdown_headings(whole))
