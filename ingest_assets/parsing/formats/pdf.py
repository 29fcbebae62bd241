"""PDF: two engines, since a quarter of difficult files are empty in one and readable in the other."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ingest_assets.parsing.formats.pdf_outline import Entry, Found, headings_on, outline_of, running_heads
from ingest_assets.parsing.formats.pdf_pages import Document, Page, Shown
from ingest_assets.parsing.formats.pdf_streams import refuse_bombs
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.counting import counted
from resources.document_state.reasons import Reason

_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SECOND = "pdf-oxide"
_FIRST = "pypdfium2"


class _Reading(NamedTuple):
    """What the first engine found: the pages' text, and what they show where they have none."""

    pages: list[str]
    hidden: int
    layers: int
    only_pictures: bool
    any_picture: bool


def read(source: Source, text: Text) -> None:
    """Write the pages.

    Raises:
        Refused: `password_required`, `too_many_pages`, `image_only`, `no_text`, `malformed`, `inflates_too_much`.
    """
    text.markdown = False
    refuse_bombs(source.content, source.limits)
    with Document(source.content) as document:
        if document.is_locked:
            raise Refused(Reason.PASSWORD_REQUIRED, "The PDF is encrypted.")
        if document.n_pages > 0:
            _read_open(document, source, text)
        elif _write(text, _second_engine(source), {}):
            text.library = _SECOND
        else:
            raise Refused(Reason.MALFORMED, "No engine can open the PDF.")


def _read_open(document: Document, source: Source, text: Text) -> None:
    count = document.n_pages
    if count > source.limits.pages:
        raise Refused(
            Reason.TOO_MANY_PAGES, f"It has {counted(count, 'page')}; limits.pages is {source.limits.pages:,}."
        )
    text.suggest_title(document.title())
    outline = outline_of(document.raw)
    found = _first_engine(document)
    if found.hidden:
        text.removed["hidden"] += found.hidden
        text.warn("Hidden passages were left out.")
    if found.layers:
        text.warn(f"The text of {counted(found.layers, 'page')} is an invisible layer over pictures, as OCR makes it.")
    if _write(text, found.pages, outline):
        text.library = _FIRST
        return
    # The second engine shows hidden text, and finds none in pictures, at which it looks for seconds.
    if not found.hidden and not found.only_pictures and _write(text, _second_engine(source), outline):
        text.library = _SECOND
        return
    if found.any_picture:
        raise Refused(Reason.IMAGE_ONLY, f"{_without_text(count)}, only pictures.")
    raise Refused(Reason.NO_TEXT, f"{_without_text(count)}.")


def _without_text(n_pages: int) -> str:
    return "Its only page has no text" if n_pages == 1 else f"None of its {n_pages:,} pages has text"


def _first_engine(document: Document) -> _Reading:
    pages: list[str] = []
    shown: list[Shown] = []
    hidden = layers = 0
    for index in range(document.n_pages):
        with Page(document, index) as page:
            text = page.text()
            if text.strip():
                left_out, is_layer = page.leave_out_hidden()
                hidden += left_out
                layers += is_layer
                text = page.text() if left_out else text
            if not text.strip():
                shown.append(page.shown())
            pages.append(text)
    return _Reading(
        pages,
        hidden,
        layers,
        bool(shown) and set(shown) == {Shown.PICTURES},
        Shown.PICTURES in shown or Shown.MIXED in shown,
    )


def _write(text: Text, pages: Iterable[str], outline: Mapping[int, Sequence[Entry]]) -> bool:
    """Write pages; False when all were empty, and then nothing has been written."""
    n_pages = empty = 0
    all_lines = [page.replace("\r\n", "\n").strip().split("\n") for page in pages]
    heads = running_heads(all_lines) if outline else set()
    for number, lines in enumerate(all_lines, 1):
        n_pages = number
        if any(lines):
            text.page(number)
            _write_page(lines, headings_on(lines, outline.get(number - 1, ()), heads), text)
        else:
            empty += 1
    if n_pages == empty:
        return False
    text.n_pages, text.empty_pages = n_pages, empty
    return True


def _write_page(lines: Sequence[str], headings: Iterable[Found], text: Text) -> None:
    start = 0
    for (first, end), level in headings:
        _write_lines(lines[start:first], text)
        text.heading(level, " ".join(lines[first:end]))
        text.markdown = True  # so that pieces begin where sections do
        start = end
    _write_lines(lines[start:], text)


def _write_lines(lines: Sequence[str], text: Text) -> None:
    text.block(_BLANK_LINES.sub("\n\n", "\n".join(lines)))


def _second_engine(source: Source) -> list[str]:
    import pdf_oxide

    pdf_oxide.disable_logging()  # it fills standard error, where a crash would say its last words
    most = source.limits.pages
    count = 0
    pages: list[str] = []
    try:
        document = pdf_oxide.PdfDocument.from_bytes(source.content)
        count = document.page_count()
        pages.extend(document.extract_text(index) for index in range(count if count <= most else 0))
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001 - its panics are no Exception
        # What it cannot read is the first engine's verdict to name.
        return pages
    if count > most:
        raise Refused(Reason.TOO_MANY_PAGES, f"It has {counted(count, 'page')}; limits.pages is {most:,}.")
    return pages
