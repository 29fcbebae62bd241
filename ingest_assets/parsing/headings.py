"""Headings of the two plain-text markups, found by line."""

import re
from collections.abc import Iterator

from .text import Heading

_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_NOT_A_PARAGRAPH = ("#", ">", "-", "*", "+", "|", "<", "    ", "\t", "```", "~~~")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_LONGEST = 300
_RST_CHARS = "=-~^\"'`#*+.:_<>"
_RST_ROLE = re.compile(r":[\w:+.-]+:`([^`<\n]*?)(?: <[^`\n]*>)?`")


def markdown_headings(text: str) -> Iterator[Heading]:
    """ATX and underlined headings, outside code fences and front matter."""
    fence = ""
    offset = 0
    before, before_at = "", 0
    matter = text.startswith("---\n")
    for number, line in enumerate(text.split("\n")):
        here, offset = offset, offset + len(line) + 1
        if matter:
            matter = number == 0 or line.rstrip() not in {"---", "..."}
            continue
        first = line.lstrip(" ")[:1]
        if fence:
            if first == fence[0] and _closes(line, fence):
                fence = ""
        elif first in {"`", "~"} and (opened := _FENCE.match(line)) and "`" not in opened[2]:
            fence, before = opened[1], ""
        elif first == "#" and len(line) <= _LONGEST and (found := _ATX.match(line)):
            before = ""
            if title := plain(found[2] or ""):
                yield Heading(here, len(found[1]), title)
        elif first and first in "=-" and before and _SETEXT.match(line):
            yield Heading(before_at, 1 if first == "=" else 2, plain(before))
            before = ""
        elif not line.strip() or line.startswith(_NOT_A_PARAGRAPH) or len(line) > _LONGEST:
            before = ""
        else:
            before, before_at = ("" if before else line.strip()), here


def rst_headings(text: str) -> Iterator[Heading]:
    """Underlined headings; the order in which adornments first appear gives the levels, as docutils has it."""
    levels: list[str] = []
    offset = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        here, offset = offset, offset + len(line) + 1
        if not line or line[0] not in _RST_CHARS or not number:
            continue
        rule = line.rstrip()
        title = lines[number - 1]
        if rule != rule[0] * len(rule) or len(rule) < 2 or not title.strip() or len(title) > _LONGEST:  # noqa: PLR2004
            continue
        over = number > 1 and lines[number - 2].rstrip() == rule
        if (
            len(rule) < len(title.strip())
            or (title[0] in " \t" and not over)
            or title.rstrip() == title[0] * len(title)
        ):
            continue
        if number > 1 and lines[number - 2].strip() and not over:
            continue
        start = here - len(title) - 1 - (len(lines[number - 2]) + 1 if over else 0)
        style = rule[0] * 2 if over else rule[0]
        if style not in levels:
            levels.append(style)
        yield Heading(start, levels.index(style) + 1, _RST_ROLE.sub(r"\1", title.strip()))


def plain(title: str) -> str:
    """A Markdown heading's text without its links and emphasis."""
    title = _LINK.sub(r"\1", title)
    return " ".join(title.replace("`", "").replace("**", "").strip("* \t").split())


def _closes(line: str, fence: str) -> bool:
    rule = line.strip()
    return len(rule) >= len(fence) and rule == fence[0] * len(rule)
