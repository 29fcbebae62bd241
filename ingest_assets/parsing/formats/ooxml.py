"""What Word and PowerPoint files share."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from lxml import etree

from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Text
from resources.document_state.reasons import Reason

_Opened = TypeVar("_Opened")
_JUNK_TITLES = frozenset(["powerpoint presentation", "word document", "presentation", "untitled", "title"])


def opened(open_package: Callable[[], _Opened]) -> _Opened:
    """Open a package, and say why when that fails.

    Raises:
        Refused: `too_deep`, `too_large`, `malformed`.
    """
    try:
        return open_package()
    except etree.XMLSyntaxError as error:
        words = str(error)
        if "depth" in words:
            raise Refused(Reason.TOO_DEEP, "Its XML is nested too deeply.") from error
        if "huge" in words.lower() or "too long" in words:
            raise Refused(Reason.TOO_LARGE, "A single text in its XML is over 10 million bytes.") from error
        raise Refused(Reason.MALFORMED, f"An XML part is damaged: {words}") from error
    except (KeyError, AttributeError) as error:
        raise Refused(Reason.MALFORMED, "A part that must be there is missing.") from error


def one_line(words: str) -> str:
    """Words without line breaks or double spaces."""
    return " ".join(words.split())


def write_table(rows: Iterable[list[str]], text: Text) -> None:
    """Write rows as a Markdown table; a table of one column is paragraphs."""
    shown = [row for row in rows if any(row)]
    if max((len(row) for row in shown), default=0) == 1:
        for row in shown:
            text.block(row[0])
        return
    for number, row in enumerate(shown):
        text.add("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n")
        if number == 0 and len(shown) > 1:
            text.add("|" + " --- |" * len(row) + "\n")
    if shown:
        text.add("\n")


def core_title(properties: Any) -> str:
    """The title among the document properties; the ones that programs put there by themselves are not taken."""
    title = one_line(properties.title or "")
    return "" if title.lower() in _JUNK_TITLES else title
