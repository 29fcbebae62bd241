"""Headings of the two plain-text markups, found by line."""

import re
from collections.abc import Iterator

from .text import Heading

# Only lines that may be a heading or a fence are looked at. The pattern starts with a literal, which the
# engine finds by memchr: 0.03 ms for a document of 14 KB, where a loop over its lines takes 0.4.
_CANDIDATE = re.compile(r"\n {0,3}([#`~=-])")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_NOT_A_TITLE = ("#", ">", "- ", "* ", "+ ", "|", "<", "    ", "\t", "```", "~~~", "---")
_MATTER_END = re.compile(r"\n(?:---|\.\.\.)[ \t]*(?=\n|$)")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.:][^{}]*\}$")  # `{#anchor .class}`, as many renderers take them
_LONGEST = 300

_RST_RULE = re.compile(r"\n([=\-~^\"'`#*+.:_<>])\1+[ \t]*(?=\n|$)")
_RST_ROLE = re.compile(r":[\w:+.-]+:`([^`<\n]*?)(?: <[^`\n]*>)?`")


def markdown_headings(text: str) -> Iterator[Heading]:
    """ATX and underlined headings, outside code fences and front matter."""
    text = "\n" + text
    after = 0
    if text.startswith("\n---\n") and (end := _MATTER_END.search(text, 4)):
        after = end.end()
    fence = ""
    for candidate in _CANDIDATE.finditer(text, after):
        start = candidate.start()
        line = _line(text, start + 1)
        kind = candidate[1]
        if fence:
            if kind == fence[0] and _closes(line, fence):
                fence = ""
        elif len(line) > _LONGEST:
            continue
        elif kind in "`~":
            opened = _FENCE.match(line)
            fence = opened[1] if opened else ""
        elif kind == "#":
            found = _ATX.match(line)
            if found and (title := plain(found[2] or "")):
                yield Heading(start, len(found[1]), title)
        elif _SETEXT.match(line) and (title := _underlined(text, start)):
            yield Heading(start - len(title) - 1, 1 if kind == "=" else 2, plain(title))


def rst_headings(text: str) -> Iterator[Heading]:
    """Underlined headings; the order in which adornments first appear gives the levels, as docutils has it."""
    text = "\n" + text
    levels: list[str] = []
    for rule in _RST_RULE.finditer(text):
        title = _line_before(text, rule.start())
        start = rule.start() - len(title) - 1
        above = _line_before(text, start) if start > 0 else ""
        over = above.rstrip() == rule[0].strip()
        if above.strip() and not over:
            continue
        if not _is_rst_title(title, len(rule[0].strip()), indented=over):
            continue
        style = rule[1] * 2 if over else rule[1]
        if style not in levels:
            levels.append(style)
        offset = start - len(above) - 1 if over else start
        yield Heading(offset, levels.index(style) + 1, _RST_ROLE.sub(r"\1", title.strip()))


def _is_rst_title(title: str, rule_length: int, *, indented: bool) -> bool:
    words = title.strip()
    if not words or len(title) > _LONGEST or rule_length < len(words):
        return False
    if title[0] in " \t" and not indented:
        return False
    return words != words[0] * len(words) or words[0].isalnum()


def _underlined(text: str, rule_at: int) -> str:
    """The one line of paragraph over an underline, or nothing."""
    title = _line_before(text, rule_at)
    start = rule_at - len(title) - 1
    if not title.strip() or len(title) > _LONGEST or title.startswith(_NOT_A_TITLE):
        return ""
    above = _line_before(text, start) if start > 0 else ""
    return "" if above.strip() else title


def _line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start:] if end < 0 else text[start:end]


def _line_before(text: str, newline: int) -> str:
    """The line that this newline ends."""
    return text[text.rfind("\n", 0, newline) + 1 : newline]


def plain(title: str) -> str:
    """A Markdown heading's text without its links, emphasis and attributes."""
    title = _ATTRIBUTES.sub("", _LINK.sub(r"\1", title.strip()))
    return " ".join(title.replace("`", "").replace("**", "").strip("* \t").split())


def _closes(line: str, fence: str) -> bool:
    rule = line.strip()
    return len(rule) >= len(fence) and rule == fence[0] * len(rule)
