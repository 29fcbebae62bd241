"""EPUB: the chapters in the order of the book's spine."""

import posixpath
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from ingest_assets.parsing.decode import decode
from ingest_assets.parsing.formats.html import write_html
from ingest_assets.parsing.inflate import Archive, refuse_entities
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_CONTAINER = "META-INF/container.xml"


def read(source: Source, text: Text) -> None:
    """Write every chapter.

    Raises:
        Refused: `malformed`, `password_required`, `inflates_too_much`, `too_many_pages`.
    """
    book = Archive(source.content, source.limits)
    if "META-INF/encryption.xml" in book and b"EncryptedKey" in book.read("META-INF/encryption.xml"):
        raise Refused(Reason.PASSWORD_REQUIRED, "The book is protected by DRM.")
    container = _xml(book.read(_CONTAINER))
    root = container.css_first("rootfile")
    package_name = (root.attributes.get("full-path") or "") if root is not None else ""
    package = _xml(book.read(package_name))
    title = next((node for node in package.root.traverse() if node.tag == "dc:title"), None) if package.root else None
    text.suggest_title(title.text() if title is not None else "")
    chapters = _spine(package, posixpath.dirname(package_name))
    if not chapters:
        raise Refused(Reason.MALFORMED, "The book names no chapters.")
    if len(chapters) > source.limits.pages:
        raise Refused(
            Reason.TOO_MANY_PAGES, f"It has {len(chapters):,} chapters; limits.pages is {source.limits.pages:,}."
        )
    for name in chapters:
        if name not in book:
            text.warn("A chapter that the book names is missing.")
            continue
        decoded = decode(book.read(name))
        if decoded is not None:
            write_html(decoded.text, text)


def _xml(content: bytes) -> LexborHTMLParser:
    """Parsed as HTML, which knows no entities of the document's own."""
    decoded = decode(content)
    if decoded is None:
        raise Refused(Reason.MALFORMED, "The book's table of contents is not text.")
    refuse_entities(content)
    return LexborHTMLParser(decoded.text)


def _spine(package: LexborHTMLParser, folder: str) -> list[str]:
    names = {}
    order = []
    for node in package.root.traverse() if package.root else ():
        if node.tag == "item" and node.attributes.get("href"):
            names[node.attributes.get("id")] = unquote(node.attributes["href"] or "")
        elif node.tag == "itemref":
            order.append(node.attributes.get("idref"))
    return [posixpath.normpath(posixpath.join(folder, names[one])) for one in order if one in names]
