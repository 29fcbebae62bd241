"""PDF: two engines, since a quarter of difficult files are empty in one and readable in the other."""

import re
from collections.abc import Iterable

import pypdfium2
import pypdfium2.raw as pdfium_c

from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SECOND = "pdf-oxide"


def read(source: Source, text: Text) -> None:
    """Write the pages.

    Raises:
        Refused: `password_required`, `too_many_pages`, `image_only`, `no_text`, `malformed`.
    """
    text.markdown = False
    try:
        document = pypdfium2.PdfDocument(source.content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
            raise Refused(Reason.PASSWORD_REQUIRED, "The PDF is encrypted.") from error
        if not _write(text, _second_engine(source)):
            raise Refused(Reason.MALFORMED, "No engine can open the PDF.") from error
        text.library = _SECOND
        return
    try:
        _read_open(document, source, text)
    finally:
        document.close()


def _read_open(document: pypdfium2.PdfDocument, source: Source, text: Text) -> None:
    count = len(document)
    if count > source.limits.pages:
        raise Refused(Reason.TOO_MANY_PAGES, f"It has {count:,} pages, over {source.limits.pages:,}.")
    text.suggest_title(document.get_metadata_value("Title"))
    if _write(text, (_page_text(document, index) for index in range(count))):
        return
    if _write(text, _second_engine(source)):
        text.library = _SECOND
        return
    if any(_has_image(document, index) for index in range(count)):
        raise Refused(Reason.IMAGE_ONLY, f"None of its {count:,} pages has text, only pictures.")
    raise Refused(Reason.NO_TEXT, f"None of its {count:,} pages has text.")


def _write(text: Text, pages: Iterable[str]) -> bool:
    """Write pages; False when all were empty, and then nothing has been written."""
    n_pages = empty = 0
    for number, page in enumerate(pages, 1):
        n_pages = number
        if page.strip():
            text.page(number)
            text.block(_BLANK_LINES.sub("\n\n", page.replace("\r\n", "\n")))
        else:
            empty += 1
    if n_pages == empty:
        return False
    text.n_pages, text.empty_pages = n_pages, empty
    return True


def _page_text(document: pypdfium2.PdfDocument, index: int) -> str:
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return ""
    try:
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError:
        return ""
    try:
        # Not get_text_bounded: it drops line breaks (measured on 207 pages: 36 differ, 4 of them come out empty).
        found: str = text_page.get_text_range()
    finally:
        text_page.close()
        page.close()
    return found.replace("\ufffe", "\x02")  # here it marks a hyphen break by the other sign


def _has_image(document: pypdfium2.PdfDocument, index: int) -> bool:
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return False
    found = any(True for _ in page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=5))
    page.close()
    return found


def _second_engine(source: Source) -> list[str]:
    import pdf_oxide

    pdf_oxide.disable_logging()  # it fills standard error, where a crash would say its last words
    pages: list[str] = []
    try:
        document = pdf_oxide.PdfDocument.from_bytes(source.content)
        count = document.page_count()
        if count > source.limits.pages:
            raise Refused(Reason.TOO_MANY_PAGES, f"It has {count:,} pages, over {source.limits.pages:,}.")
        pages.extend(document.extract_text(index) for index in range(count))
    except (RuntimeError, ValueError, OSError):
        # What it cannot read is the first engine's verdict to name.
        return pages
    return pages
