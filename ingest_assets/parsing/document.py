"""One document, from bytes to pieces; every exception ends as a reason."""

import re
from importlib import import_module

from resources.document_state.reasons import Reason

from .chunk import cut
from .clean import n_bidi_controls
from .formats import FORMATS
from .limits import Chunking, ParseLimits
from .result import MOST_EMPTY_PAGES, ParsedDocument, ParseFailure, Refused
from .sniff import Sniffed, sniff
from .text import Source, Text
from .title import title_of
from .versions import parser_name

_WORD = re.compile(r"[^\W_]")  # a letter or a digit, of any script; without one it is noise


def parse(filename: str, content: bytes, limits: ParseLimits, chunking: Chunking) -> ParsedDocument | ParseFailure:
    """Parse in this process. Only a child should: nothing here limits time or memory."""
    try:
        return _parse(filename, content, limits, chunking)
    except Refused as refused:
        return ParseFailure(refused.reason, refused.detail)
    except MemoryError:
        return ParseFailure(
            Reason.OUT_OF_MEMORY, f"Parsing needed more; limits.memory_bytes is {limits.memory_bytes:,}."
        )
    except RecursionError:
        return ParseFailure(Reason.TOO_DEEP, "Its parts are nested deeper than any program writes them.")
    except BaseException as error:  # noqa: BLE001 - parsers raise anything, panics of Rust too; the document failed
        return ParseFailure(Reason.MALFORMED, f"{type(error).__name__}: {_one_line(error)}")


def _parse(filename: str, content: bytes, limits: ParseLimits, chunking: Chunking) -> ParsedDocument:
    if not content:
        raise Refused(Reason.EMPTY_FILE, "The file has no bytes.")
    sniffed = sniff(filename, content, limits)
    text = Text(limits)
    if sniffed.warning:
        text.warn(sniffed.warning)
    read(sniffed, Source(filename, content, limits, sniffed.text), text)
    whole = text.finish()
    pieces = cut(text, whole, chunking)
    if not pieces or not _WORD.search(whole):
        raise Refused(Reason.NO_TEXT, "Nothing in it is text.")
    _warn(text, whole)
    media_type = text.media_type or sniffed.media_type
    library = text.library or next(iter(FORMATS[sniffed.media_type].libraries), None)
    return ParsedDocument(
        title=title_of(text, whole, filename),
        media_type=media_type,
        parser=parser_name(library, media_type),
        pieces=pieces,
        n_chars=len(whole),
        pages=text.n_pages,
        empty_pages=text.empty_pages,
        encoding=sniffed.encoding,
        warnings=text.warnings,
        removed=dict(sorted(text.removed.items())),
    )


def _warn(text: Text, whole: str) -> None:
    """Say what a person should know of a text that was read."""
    if text.n_pages and text.empty_pages > MOST_EMPTY_PAGES * text.n_pages:
        text.warn(f"{text.empty_pages:,} of {text.n_pages:,} pages gave no text.")
    if controls := n_bidi_controls(whole):
        text.warn(f"It holds {controls:,} characters that change the direction of text; what is shown may mislead.")
    if text.removed:
        found = sorted(text.removed.items())
        text.warn("Left out, in characters: " + ", ".join(f"{kind.replace('_', ' ')} {n:,}" for kind, n in found) + ".")


def read(sniffed: Sniffed, source: Source, text: Text) -> None:
    """Hand a document to the module of its format.

    Raises:
        Refused: `unsupported_type` when no module reads it, or what the module finds.
    """
    entry = FORMATS.get(sniffed.media_type)
    if entry is None:
        raise Refused(Reason.UNSUPPORTED_TYPE, f"No parser reads {sniffed.media_type}.")
    import_module(f".formats.{entry.module}", __package__).read(source, text)


def _one_line(error: BaseException) -> str:
    """An exception's words without line breaks and without anything that looks like a path of this machine."""
    words = str(error).split()
    return " ".join("…" if "/" in word and word.strip("'\"([").startswith("/") else word for word in words)
