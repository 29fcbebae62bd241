"""OpenDocument text: headings, paragraphs, lists and tables of `content.xml`."""

from collections.abc import Iterator
from typing import Any

from lxml import etree

from ingest_assets.parsing.formats.ooxml import one_line, opened, write_table
from ingest_assets.parsing.inflate import Archive, refuse_entities
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_NS = "{urn:oasis:names:tc:opendocument:xmlns:"
_TEXT = _NS + "text:1.0}"
_TABLE = _NS + "table:1.0}"
_OFFICE = _NS + "office:1.0}"
_DEEPEST = 100
_SKIPPED = frozenset([_TEXT + "tracked-changes", _OFFICE + "annotation", _OFFICE + "forms"])


def read(source: Source, text: Text) -> None:
    """Write the body.

    Raises:
        Refused: `password_required`, `malformed`, `too_deep`, `inflates_too_much`.
    """
    archive = Archive(source.content, source.limits)
    refuse_encrypted(archive)
    archive.check(refuse_entities_in_part)
    content = archive.read("content.xml")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    root = opened(lambda: etree.fromstring(content, parser))
    body = root.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise Refused(Reason.MALFORMED, "It has no text body.")
    _write(body, text, 0)


def refuse_entities_in_part(name: str, part: bytes) -> None:
    """Refuse entities of a part's own; a bare document type stands in every file with macros.

    Raises:
        Refused: `malformed`.
    """
    if name.lower().endswith((".xml", ".rdf", ".xlb", ".xdl")):
        refuse_entities(part)


def refuse_encrypted(archive: Archive) -> None:
    """Refuse an OpenDocument file whose manifest says that parts of it are encrypted.

    Raises:
        Refused: `password_required`.
    """
    if "META-INF/manifest.xml" in archive and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise Refused(Reason.PASSWORD_REQUIRED, "The document is encrypted.")


def _write(element: Any, text: Text, depth: int) -> None:
    if depth > _DEEPEST:
        raise Refused(Reason.TOO_DEEP, f"It is nested more than {_DEEPEST} deep.")
    for child in element:
        if child.tag == _TEXT + "h":
            level = child.get(_TEXT + "outline-level", "1")
            text.heading(int(level) if level.isdigit() else 1, "".join(_words(child)))
        elif child.tag == _TEXT + "p":
            text.block("".join(_words(child)))
        elif child.tag == _TEXT + "list-item":
            words = one_line(" ".join("".join(_words(part)) for part in child.iter(_TEXT + "p", _TEXT + "h")))
            text.add(f"- {words}\n" if words else "")
        elif child.tag == _TEXT + "list":
            _write(child, text, depth + 1)
            text.add("\n" if depth == 0 else "")
        elif child.tag == _TABLE + "table":
            write_table(([_cell(cell) for cell in row] for row in child.iter(_TABLE + "table-row")), text)
        elif isinstance(child.tag, str) and child.tag not in _SKIPPED:
            _write(child, text, depth + 1)


def _cell(cell: Any) -> str:
    return one_line(" ".join("".join(_words(part)) for part in cell.iter(_TEXT + "p", _TEXT + "h")))


def _words(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in {_TEXT + "s", _TEXT + "tab"}:
            yield " "
        elif child.tag == _TEXT + "line-break":
            yield "\n"
        elif isinstance(child.tag, str) and child.tag not in _SKIPPED:
            yield from _words(child)
        yield child.tail or ""
