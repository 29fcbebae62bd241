"""HTML to Markdown-like text: headings, lists, tables, code; no scripts, no navigation, nothing hidden."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ingest_assets.parsing.clean import clean
from ingest_assets.parsing.text import Source, Text

from .html_hidden import hidden_nodes
from .html_walk import Walk

_MAIN = "main, [role=main], article"
_MAIN_SHARE = 0.25  # a main part with less of the page's text than this is a widget


def read(source: Source, text: Text) -> None:
    """Write the page's text, and take its `<title>`."""
    write_html(source.text, text)


def write_html(html: str, text: Text) -> None:
    """Write the text of a page or a fragment."""
    tree = LexborHTMLParser(clean(html, text.removed))
    root = tree.root
    body = tree.body or root
    if body is None:
        return
    title = tree.css_first("head title") or tree.css_first("title")
    page_title = title.text() if title is not None else ""
    start = text.length
    walk = Walk(text, hidden_nodes(tree))
    walk.run(_main_part(tree, body), skip_navigation=True)
    if text.length == start:
        walk.run(body, skip_navigation=False)
    if not text.headings:
        text.suggest_title(page_title)
    if walk.hidden:
        text.removed["hidden"] += walk.hidden
        text.warn("Hidden passages were left out.")


def _main_part(tree: LexborHTMLParser, body: LexborNode) -> LexborNode:
    """The one part the author marked as main, when it holds a fair share of the text."""
    marked = tree.css(_MAIN)
    mains = [node for node in marked if node.tag == "main" or node.attributes.get("role") == "main"] or marked
    if len(mains) != 1:
        return body
    whole = len(re.sub(r"\s+", "", body.text(deep=True)))
    part = len(re.sub(r"\s+", "", mains[0].text(deep=True)))
    return mains[0] if part >= _MAIN_SHARE * whole else body
