"""What Word and PowerPoint files share."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from lxml import etree

from ingest_assets.parsing.inflate import Archive, refuse_declarations
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_Opened = TypeVar("_Opened")
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_MAIN = re.compile(re.escape(_STRICT) + rb"(wordprocessingml|drawingml|presentationml)/main")
_USUAL = b"http://schemas.openxmlformats.org/"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)


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


def accepted(source: Source) -> bytes:
    """Check a package, and give its bytes; Strict Open XML is given in the usual namespaces.

    Raises:
        Refused: As `Archive.check`.
    """
    archive = Archive(source.content, source.limits)
    archive.check(refuse_declarations)
    if "_rels/.rels" not in archive or _STRICT not in Archive(source.content, source.limits).read("_rels/.rels"):
        return source.content
    rewritten = io.BytesIO()
    again = Archive(source.content, source.limits)
    with zipfile.ZipFile(rewritten, "w") as file:
        for name in again:
            data = again.read(name)
            file.writestr(name, _usual_namespaces(data) if name.endswith((".xml", ".rels")) else data)
    return rewritten.getvalue()


def _usual_namespaces(xml: bytes) -> bytes:
    xml = xml.replace(_STRICT + b"officeDocument/relationships", _USUAL + b"officeDocument/2006/relationships")
    return _STRICT_MAIN.sub(_USUAL + rb"\1/2006/main", xml)


def write_drawings(source: Source, pattern: re.Pattern[str], text: Text) -> None:
    """Write the text of parts that no library reads: diagrams, drawings on sheets, charts in Word."""
    archive = Archive(source.content, source.limits)
    for name in sorted(archive):
        if pattern.fullmatch(name):
            root = opened(partial(etree.fromstring, archive.read(name), _PARSER))
            for paragraph in root.iter(_A + "p", _C + "pt"):
                text.block(one_line("".join(run.text or "" for run in paragraph.iter(_A + "t", _C + "v"))))


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
