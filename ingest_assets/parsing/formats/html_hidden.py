"""What a page's own style sheets and attributes keep from being seen."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

_NOT_SHOWN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|(?:font-size|opacity)\s*:\s*0(?![.\d]*[1-9])"
    r"|(?<![\w-])color\s*:\s*transparent"
    r"|(?:left|right|top|text-indent)\s*:\s*-\d{4,}(?:px|pt|em|rem)",
    re.IGNORECASE,
)
_BRACE = re.compile(r"[{}]")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LONGEST_SHEET = 1_000_000
_MOST_SELECTORS = 500
_LONGEST_SELECTORS = 2000


def hides(style: str) -> bool:
    """Whether declarations keep what they are about from being seen."""
    return _NOT_SHOWN.search(style) is not None


def hidden_nodes(tree: LexborHTMLParser) -> frozenset[int]:
    """The ids of elements that a style sheet in the page hides.

    Selectors with a state (`:hover`, `:not(...)`) or that hide the page itself are not believed: scripts show
    such elements.
    """
    found: set[int] = set()
    n_left = _MOST_SELECTORS
    for sheet in tree.css("style"):
        for selectors, declarations in _rules(_COMMENT.sub("", sheet.text()[:_LONGEST_SHEET])):
            if not hides(declarations):
                continue
            for selector in map(str.strip, selectors.split(",")):
                if selector and ":" not in selector and selector not in {"*", "html", "body"} and n_left:
                    n_left -= 1
                    found |= _matching(tree, selector)
    return frozenset(found)


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of the rules that hold whatever the screen: those within no other braces."""
    opened: list[int] = []
    after = 0
    for brace in _BRACE.finditer(sheet):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            start = opened.pop()
            if not opened:
                selectors = sheet[after:start].rpartition(";")[2].strip()
                if not selectors.startswith("@") and len(selectors) <= _LONGEST_SELECTORS:
                    yield selectors, sheet[start + 1 : brace.start()]
                after = brace.end()


def _matching(tree: LexborHTMLParser, selector: str) -> set[int]:
    try:
        return {node.mem_id for node in tree.css(selector)}
    except Exception:  # noqa: BLE001 - what the library says of a selector it does not know
        return set()
