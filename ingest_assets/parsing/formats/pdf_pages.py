"""A PDF and its pages in the first engine, by the engine's own calls: its helpers cost a tenth of the time."""

import ctypes
from collections.abc import Iterator
from enum import Enum
from itertools import compress, repeat
from types import TracebackType
from typing import Any, NamedTuple, Self

import pypdfium2.raw as pdfium_c

_INVISIBLE = pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE
_TITLE_BYTES = 2000
_DEEPEST = 6  # levels of forms within each other that are looked into
_UNKNOWN = pdfium_c.FPDF_TEXTRENDERMODE_UNKNOWN  # the mode of what is no text
_BUFFER_UNITS = 1 << 16


def _prototype(function: Any, result: Any, *arguments: Any) -> Any:
    """The same function with plain addresses: the library's own prototypes make an object for each pointer."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    return ctypes.PYFUNCTYPE(result, *arguments)(address)


_INT, _POINTER = ctypes.c_int, ctypes.c_void_p
_get_meta_text = _prototype(
    pdfium_c.FPDF_GetMetaText, ctypes.c_ulong, _POINTER, ctypes.c_char_p, _POINTER, ctypes.c_ulong
)
_load_page = _prototype(pdfium_c.FPDF_LoadPage, _POINTER, _POINTER, _INT)
_close_page = _prototype(pdfium_c.FPDF_ClosePage, None, _POINTER)
_load_text = _prototype(pdfium_c.FPDFText_LoadPage, _POINTER, _POINTER)
_close_text = _prototype(pdfium_c.FPDFText_ClosePage, None, _POINTER)
_count_chars = _prototype(pdfium_c.FPDFText_CountChars, _INT, _POINTER)
_text_index = _prototype(pdfium_c.FPDFText_GetTextIndexFromCharIndex, _INT, _POINTER, _INT)
_get_text = _prototype(pdfium_c.FPDFText_GetText, _INT, _POINTER, _INT, _INT, _POINTER)
_count_annotations = _prototype(pdfium_c.FPDFPage_GetAnnotCount, _INT, _POINTER)
_kind = _prototype(pdfium_c.FPDFPageObj_GetType, _INT, _POINTER)
_render_mode = _prototype(pdfium_c.FPDFTextObj_GetTextRenderMode, _INT, _POINTER)
_destroy = _prototype(pdfium_c.FPDFPageObj_Destroy, None, _POINTER)

# One for all pages: a buffer of another length is another type, and making that costs more than a page's text.
_buffer = (ctypes.c_ushort * _BUFFER_UNITS)()


class Shown(Enum):
    """What a page without text shows."""

    NOTHING = "nothing"
    PICTURES = "pictures"
    MIXED = "pictures and more: drawings, annotations, fields"
    DRAWINGS = "no picture"


class Document:
    """An open document; use it as a context manager.

    Attributes:
        raw: The engine's document, None if it cannot be opened.
        address: Where that is.
        n_pages: How many pages it says it has.
        is_locked: Whether it cannot be opened without a password.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content  # the engine reads in it as long as the document is open
        self.raw = pdfium_c.FPDF_LoadMemDocument64(content, len(content), None) or None
        self.address = ctypes.cast(self.raw, ctypes.c_void_p).value if self.raw is not None else None
        self.is_locked = self.raw is None and pdfium_c.FPDF_GetLastError() == pdfium_c.FPDF_ERR_PASSWORD
        self.n_pages: int = pdfium_c.FPDF_GetPageCount(self.raw) if self.raw is not None else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.raw is not None:
            pdfium_c.FPDF_CloseDocument(self.raw)

    def title(self) -> str:
        """What it says its title is; empty if it says nothing, or more than a title is."""
        n_bytes = _get_meta_text(self.address, b"Title", ctypes.addressof(_buffer), _TITLE_BYTES)
        if n_bytes > _TITLE_BYTES:
            return ""  # and nothing has been written
        return ctypes.string_at(_buffer, max(0, n_bytes - 2)).decode("utf-16-le", "ignore")  # two bytes end it


class Page:
    """An open page; use it as a context manager. One that cannot be loaded is an empty page."""

    def __init__(self, document: Document, index: int) -> None:
        self._page = _load_page(document.address, index)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._page:
            _close_page(self._page)

    def text(self) -> str:
        """The page's text; hyphen breaks are U+0002."""
        loaded = _load_text(self._page) if self._page else None
        if not loaded:
            return ""
        try:
            return _text_of(loaded)
        finally:
            _close_text(loaded)

    def shown(self) -> Shown:
        """What it shows, for a page without text."""
        if not self._page:
            return Shown.NOTHING
        kinds = {kind for held in self._held() for kind in map(_kind, held.items)}
        pictures = pdfium_c.FPDF_PAGEOBJ_IMAGE in kinds
        more = kinds - {pdfium_c.FPDF_PAGEOBJ_IMAGE, pdfium_c.FPDF_PAGEOBJ_FORM}
        if pictures:
            return Shown.MIXED if more or _count_annotations(self._page) > 0 else Shown.PICTURES
        return Shown.DRAWINGS if kinds else Shown.NOTHING

    def leave_out_hidden(self) -> tuple[int, bool]:
        """Take out text in rendering mode 3, which nobody sees.

        A page that has no other text, and a picture, is a scan with the text that OCR laid over it: that stays.

        Returns:
            Characters that were taken out; whether it is such a layer.
        """
        hiding = [held for held in self._held() if _INVISIBLE in held.modes]
        if not hiding:
            return 0, False
        n_visible = sum(mode not in {_INVISIBLE, _UNKNOWN} for held in self._held() for mode in held.modes)
        if not n_visible and self.shown() in {Shown.PICTURES, Shown.MIXED}:
            return 0, True
        before = len(self.text())
        for held in hiding:
            for item in compress(held.items, map(_INVISIBLE.__eq__, held.modes)):
                if held.of.remove(held.address, item):
                    _destroy(item)
        return before - len(self.text()), False

    def _held(self) -> "Iterator[_Held]":
        return _held_by(self._page, _PAGE, _DEEPEST)


class _Holder(NamedTuple):
    """How the engine is asked for what a page holds, or a form in it."""

    count: Any
    get: Any
    remove: Any


_PAGE = _Holder(
    _prototype(pdfium_c.FPDFPage_CountObjects, _INT, _POINTER),
    _prototype(pdfium_c.FPDFPage_GetObject, _POINTER, _POINTER, _INT),
    _prototype(pdfium_c.FPDFPage_RemoveObject, _INT, _POINTER, _POINTER),
)
_FORM = _Holder(
    _prototype(pdfium_c.FPDFFormObj_CountObjects, _INT, _POINTER),
    _prototype(pdfium_c.FPDFFormObj_GetObject, _POINTER, _POINTER, ctypes.c_ulong),
    _prototype(pdfium_c.FPDFFormObj_RemoveObject, _INT, _POINTER, _POINTER),
)


class _Held(NamedTuple):
    """The objects of one page or form, and the mode that each is rendered in."""

    address: int | None
    of: _Holder
    items: list[int]
    modes: list[int]


def _held_by(address: int | None, of: _Holder, levels: int) -> Iterator[_Held]:
    """What a page or form holds, then what forms in it do; by `map`, since a page may well have 10,000 objects."""
    items = list(map(of.get, repeat(address), range(of.count(address))))
    modes = list(map(_render_mode, items))
    yield _Held(address, of, items, modes)
    others = list(compress(items, map(_UNKNOWN.__eq__, modes))) if levels else []
    for form in compress(others, map(pdfium_c.FPDF_PAGEOBJ_FORM.__eq__, map(_kind, others))):
        yield from _held_by(form, _FORM, levels - 1)


def _text_of(loaded: Any) -> str:
    """Not by bounds, which drops line breaks (measured on 207 pages: 36 differ, 4 of them come out empty)."""
    last = _count_chars(loaded) - 1
    first = 0
    # Characters at the edges that stand for no text would make the engine read beyond the range.
    while first <= last and _text_index(loaded, first) < 0:
        first += 1
    while first <= last and _text_index(loaded, last) < 0:
        last -= 1
    if first > last:
        return ""
    n_units = _text_index(loaded, last) - _text_index(loaded, first) + 2  # a zero ends them
    buffer = _buffer if n_units <= _BUFFER_UNITS else (ctypes.c_ushort * n_units)()
    written = _get_text(loaded, first, last - first + 1, ctypes.addressof(buffer))
    found = ctypes.string_at(buffer, 2 * max(0, written - 1)).decode("utf-16-le", "ignore")
    return found.replace("\ufffe", "\x02")  # here it marks a hyphen break by the other sign
