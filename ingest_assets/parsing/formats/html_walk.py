"""The walk over a parsed page. It keeps its own stack, so 50,000 nested elements cost no recursion."""

import re

from selectolax.lexbor import LexborNode

from ingest_assets.parsing.formats.html_hidden import hides
from ingest_assets.parsing.text import Text

_SKIPPED = frozenset(
    [
        "script", "style", "noscript", "template", "svg", "math", "head", "iframe", "object", "embed", "canvas",
        "audio", "video", "select", "datalist", "button", "input", "textarea", "dialog",
    ]
)  # fmt: skip
_NAVIGATION = frozenset(["nav", "footer", "aside", "menu"])
_NAVIGATION_ROLES = frozenset(
    [
        "navigation", "search", "banner", "contentinfo", "complementary", "menubar",
    ]
)  # fmt: skip
_BLOCKS = frozenset(
    [
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div",
        "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
        "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "section",
        "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
    ]
)  # fmt: skip
_HEADING = re.compile(r"h[1-6]")
_BREAK = "\x0b"  # a line break the author asked for; cleaned input has none
_PILCROW = frozenset(["¶", "#", "§", "🔗"])


class _Table:
    """A table under way.

    Attributes:
        row: The cells of the open row.
        cell: The paragraphs of the open cell, None between cells.
        heads: Whether each cell of the row is a heading cell.
        flows: Whether the open row is layout (a table stands in it), so that its cells are paragraphs.
    """

    def __init__(self) -> None:
        self.row: list[str] = []
        self.heads: list[bool] = []
        self.cell: list[str] | None = None
        self.flows = False
        self.written = 0


class Walk:
    """Writes what a reader of the page would see.

    Attributes:
        hidden: Characters left out because nobody sees them.
    """

    def __init__(self, text: Text, hidden_nodes: frozenset[int]) -> None:
        self.hidden = 0
        self._hidden_nodes = hidden_nodes
        self._text = text
        self._inline: list[str] = []
        self._lists: list[str] = []
        self._prefix = ""
        self._pre = 0
        self._heading = 0
        self._tables: list[_Table] = []

    def run(self, root: LexborNode, *, skip_navigation: bool) -> None:
        """Walk a subtree in document order."""
        node: LexborNode | None = root
        depth = 0
        while node is not None:
            entered = self._enter(node, skip_navigation and node is not root)
            below = node.child if entered else None
            if below is not None:
                node, depth = below, depth + 1
                continue
            if entered:
                self._leave(node)
            while depth and node.next is None:
                node = node.parent
                assert node is not None
                depth -= 1
                self._leave(node)
            node = node.next if depth else None
        self._flush()

    def _enter(self, node: LexborNode, skip_navigation: bool) -> bool:
        """Begin an element; False when what is in it is left out."""
        tag = node.tag
        if tag == "-text":
            self._inline.append(node.text_content or "")
            return False
        if tag is None or tag in _SKIPPED or tag.startswith(("-", "!")):
            return False
        attributes = node.attributes
        if (attributes or self._hidden_nodes) and self._left_out(node, tag, attributes, skip_navigation):
            return False
        if skip_navigation and tag in _NAVIGATION:
            return False
        if tag == "br":
            self._inline.append("\n" if self._pre else _BREAK)
        elif tag in {"td", "th"}:
            self._flush()
            if self._tables:
                self._tables[-1].cell = []
        elif tag in _BLOCKS:
            self._flush()
            self._begin(tag)
        return True

    def _left_out(self, node: LexborNode, tag: str, attributes: dict[str, str | None], skip_navigation: bool) -> bool:
        style = attributes.get("style")
        if "hidden" in attributes or (style and hides(style)) or node.mem_id in self._hidden_nodes:
            self.hidden += len(node.text(deep=True).strip())
            return True
        if attributes.get("aria-hidden") == "true":
            return True
        if tag == "a" and "headerlink" in (attributes.get("class") or ""):
            return True
        return skip_navigation and (attributes.get("role") or "") in _NAVIGATION_ROLES

    def _begin(self, tag: str) -> None:
        if tag == "pre":
            self._pre += 1
        elif tag in {"ul", "ol", "menu"}:
            self._lists.append(tag)
        elif tag == "li":
            self._prefix = "  " * max(0, len(self._lists) - 1) + "- "
        elif tag == "table":
            self._row_flows()
            self._tables.append(_Table())
        elif _HEADING.fullmatch(tag):
            self._heading = int(tag[1])

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag
        if tag in {"td", "th"}:
            self._flush()
            self._end_cell(tag == "th")
        elif tag in _BLOCKS:
            self._flush()
            self._end(tag)

    def _end(self, tag: str) -> None:
        if tag == "pre":
            self._pre -= 1
        elif tag in {"ul", "ol", "menu"} and self._lists:
            self._lists.pop()
            if not self._lists:
                self._blank_line()
        elif tag == "tr" and self._tables:
            self._end_row(self._tables[-1])
        elif tag == "table" and self._tables:
            self._tables.pop()
            self._blank_line()
        elif _HEADING.fullmatch(tag or ""):
            self._heading = 0

    def _flush(self) -> None:
        """Write the paragraph that has gathered."""
        if not self._inline:
            return
        raw = "".join(self._inline)
        self._inline.clear()
        if self._pre:
            self._write_code(raw.replace(_BREAK, "\n").strip("\n"))
            return
        lines = [" ".join(line.split()) for line in raw.split(_BREAK)]
        paragraph = "\n".join(line for line in lines if line)
        if not paragraph:
            return
        cell = self._cell
        if cell is not None:
            cell.append(paragraph.replace("\n", " "))
        elif self._heading:
            self._text.heading(self._heading, paragraph)
        elif self._prefix or self._lists:
            indent = self._prefix or "  " * len(self._lists)
            self._prefix = ""
            self._text.add(indent + paragraph.replace("\n", " ") + "\n")
        else:
            self._text.block(paragraph)

    def _write_code(self, code: str) -> None:
        if not code.strip():
            return
        cell = self._cell
        if cell is not None:
            cell.append(" ".join(code.split()))
            return
        fence = "```" if "```" not in code else "~~~~"
        self._text.add(f"{fence}\n{code}\n{fence}\n\n")

    @property
    def _cell(self) -> list[str] | None:
        return self._tables[-1].cell if self._tables else None

    def _blank_line(self) -> None:
        """After a list or a table."""
        if self._cell is None:
            self._text.add("\n")

    def _end_cell(self, header: bool) -> None:
        table = self._tables[-1] if self._tables else None
        if table is None or table.cell is None:
            return
        words = " ".join(table.cell)
        table.cell = None
        if table.flows:
            self._text.block(words)
        else:
            table.row.append(words)
            table.heads.append(header)

    def _row_flows(self) -> None:
        """A table begins within a cell: the outer one is layout, so its row is written as paragraphs."""
        table = self._tables[-1] if self._tables else None
        if table is None or table.cell is None:
            return
        for words in [*table.row, " ".join(table.cell)]:
            self._text.block(words)
        table.row, table.heads, table.cell, table.flows = [], [], [], True

    def _end_row(self, table: _Table) -> None:
        row, heads = table.row, table.heads
        table.row, table.heads, table.flows = [], [], False
        if not any(row):
            return
        if len(row) == 1 and not table.written:
            self._text.block(row[0])
            return
        self._text.add("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n")
        if not table.written and all(heads):
            self._text.add("|" + " --- |" * len(row) + "\n")
        table.written += 1
