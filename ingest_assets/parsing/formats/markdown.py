"""Markdown: the text as it is, comments left out, headings marked."""

import re

from ingest_assets.parsing.headings import markdown_headings
from ingest_assets.parsing.text import Source, Text

# A title in YAML may begin on its own line or the next, behind a sign for folding, and go on in indented lines.
_FRONT_TITLE = re.compile(
    r"---\n(?:(?!---)[^\n]*\n){0,30}?title:[ \t]*(?:[>|][+-]?[ \t]*(?=\n))?"
    r"((?:[^\n]+|\n[ \t][^\n]+)(?:\n[ \t][^\n]+)*)\n"
)
_TOKEN = re.compile(r"(?:^|\n) {0,3}(`{3,}|~{3,})|<!--|-->")


def read(source: Source, text: Text) -> None:
    """Take the text, without the comments that no reader sees, and mark its headings."""
    whole = source.text
    if "<!--" in whole:
        whole = _without_comments(whole)
        text.removed["html_comment"] += len(source.text) - len(whole)
    if front := _FRONT_TITLE.match(whole):
        text.suggest_title(front[1].strip("'\" \n"))
    text.headings.extend(markdown_headings(text.add(whole)))


def _without_comments(whole: str) -> str:
    """Cut comments out; one that is shown as code, in a fence, stays."""
    kept = []
    start = 0
    fence = ""
    opened = -1
    for token in _TOKEN.finditer(whole):
        rule = token[1]
        if opened >= 0:
            if token[0] == "-->":
                kept.append(whole[start:opened])
                start, opened = token.end(), -1
        elif fence:
            fence = "" if rule and rule.startswith(fence) else fence
        elif rule:
            fence = rule
        elif token[0] == "<!--":
            opened = token.start()
    kept.append(whole[start:])
    return "".join(kept)
