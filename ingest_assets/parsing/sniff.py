"""What a document is: its content decides, its name only chooses between kinds of text."""

import json
import re
from typing import NamedTuple

from resources.document_state.reasons import Reason

from . import formats
from .archive_kinds import is_tar
from .compressed import is_compressed
from .decode import decode
from .inflate import zip_names
from .limits import ParseLimits
from .mbox import is_mailbox
from .result import Refused

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OTHER_OLE = ("WordDocument", "PowerPoint Document", "VisioDocument", "__properties_version1.0", "Quill")
_HEAD = 1024
_PDF_HEAD = 8192  # readers accept a header that is not at the start; nasty files put 5,000 bytes before it
_BINARY = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x01\xda\x01\x01", "an SGI image"),
    (b"DDS ", "a DDS image"),
    (b"BM", "a bitmap image"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a rar archive"),
    (b"\x7fELF", "a program"),
    (b"ITSF", "a compiled help file"),
    (b"OggS", "an audio file"),
    (b"ID3", "an audio file"),
    (b"\xe4\x52\x5c\x7b", "a OneNote section"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"SQLite format 3\x00", "a database"),
    (b"RIFF", "a sound, picture or film"),
    (b"070701", "a cpio archive"),
    (b"AT&TFORM", "a DjVu scan"),
    (b"\xffWPC", "a WordPerfect document"),
)
_BY_SUFFIX = {
    "md": formats.MARKDOWN,
    "markdown": formats.MARKDOWN,
    "rst": formats.RST,
    "rest": formats.RST,
    "csv": formats.CSV,
    "tsv": formats.TSV,
    "tab": formats.TSV,
    "json": formats.JSON,
    "jsonl": formats.JSONL,
    "ndjson": formats.JSONL,
    "eml": formats.EML,
    **dict.fromkeys(
        ("xml", "xsl", "xslt", "xsd", "svg", "rss", "atom", "rdf", "kml", "gpx", "dita", "opml"), formats.XML
    ),
    "htm": formats.HTML,
    "html": formats.HTML,
    "xhtml": formats.HTML,
}
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""^<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]{1,40})""")
_HTML = re.compile(
    r"\s*(?:<!--.{0,2000}?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
# Past comments and a document type, a root element that names the space its names are of.
_XML = re.compile(
    r"(?:<!--(?:(?!-->).){0,4000}-->\s*|<!DOCTYPE[^>\[]{0,400}>\s*)*<[A-Za-z_][\w.:-]{0,100}\s[^<>]{0,1000}?xmlns[:=]",
    re.DOTALL,
)
_PDF_OBJECT = re.compile(rb"\b\d+\s+\d+\s+obj\b")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAIL = re.compile(
    r"(?:(?:return-path|received|from|to|subject|date|message-id|mime-version|delivered-to|x-[\w-]+|content-type):.*\n"
    r"(?:[ \t].*\n)*){2}",
    re.IGNORECASE,
)


class Sniffed(NamedTuple):
    """The media type, and for kinds of text the decoded text."""

    media_type: str
    text: str = ""
    encoding: str | None = None
    warning: str = ""


_PGP = b"-----BEGIN PGP MESSAGE-----"
# Programs for a printer, whose text is not what they print.
_PROGRAMS = (b"%!PS", b"\x04%!PS", b"\x1b%-12345X")


def sniff(filename: str, content: bytes, limits: ParseLimits) -> Sniffed:
    """Say what content is.

    Raises:
        Refused: `unsupported_type`, `password_required`, or what an archive's table of contents gives cause for.
    """
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Sniffed(_zip_type(content, limits))
    if is_compressed(content) or is_tar(content) or is_mailbox(filename, content):
        return Sniffed(formats.ARCHIVE)
    if content.startswith(_OLE):
        return Sniffed(_ole_type(content))
    if _is_pdf(filename, content):
        return Sniffed(formats.PDF)
    if content.startswith(b"{\\rtf"):
        return Sniffed(formats.RTF)
    if content.startswith(_PROGRAMS):
        raise Refused(Reason.UNSUPPORTED_TYPE, "The content is a program for a printer, which no parser reads.")
    if content.lstrip().startswith(_PGP):
        raise Refused(Reason.PASSWORD_REQUIRED, "It is encrypted by OpenPGP.")
    declared = _META_CHARSET.search(content[: 4 * _HEAD]) or _XML_ENCODING.match(content[:_HEAD])
    decoded = decode(content, declared[1].decode() if declared else None)
    what = next((what for magic, what in _BINARY if content.startswith(magic)), "binary data")
    if decoded is None or (what != "binary data" and _has_controls(content)):
        raise Refused(Reason.UNSUPPORTED_TYPE, f"The content is {what}, which no parser reads.")
    return Sniffed(_text_type(filename, decoded.text), *decoded)


def _is_pdf(filename: str, content: bytes) -> bool:
    """By its header, which may stand behind other bytes; or by its name, if there is an object of a PDF in it.

    Text that explains the format has a header in it, too.
    """
    if content.startswith(b"%PDF-"):
        return True
    if _suffix(filename) == "pdf" or content.startswith(b"%PDF"):
        return _PDF_OBJECT.search(content) is not None
    head = content[:_PDF_HEAD]
    return b"%PDF-" in head and not _is_plain(head) and _PDF_OBJECT.search(content) is not None


def _is_plain(head: bytes) -> bool:
    """Whether this reads as ASCII or UTF-8 without controls; a character may be cut at the end."""
    return not _CONTROL.search(head) and "\ufffd" not in head[:-3].decode("utf-8", "replace")[:-1]


def _suffix(filename: str) -> str:
    return filename.rpartition(".")[2].lower().strip()


def _has_controls(content: bytes) -> bool:
    """Text may start like a magic number ("BM", "ID3"); it does not go on with NULs."""
    return b"\x00" in content[: 4 * _HEAD]


def _zip_type(content: bytes, limits: ParseLimits) -> str:
    names = zip_names(content, limits)
    if "mimetype" in names:
        kind = names.read("mimetype", _HEAD).strip().decode("ascii", "replace")
        if kind in {formats.EPUB, formats.ODT, formats.ODS}:
            return kind
        raise Refused(Reason.UNSUPPORTED_TYPE, f"No parser reads {kind[:100]}.")
    if "[Content_Types].xml" in names:
        types = names.read("[Content_Types].xml", 1 << 20)
        for mark, media_type in (
            (b"wordprocessingml", formats.DOCX),
            (b"ms-word.", formats.DOCX),
            (b"presentationml", formats.PPTX),
            (b"ms-powerpoint.", formats.PPTX),
            (b"spreadsheetml", formats.XLSX),
            (b"ms-excel.", formats.XLSX),
        ):
            if re.search(rb'ContentType\s*=\s*"[^"]*' + re.escape(mark) + rb'[^"]*main\+xml"', types):
                return media_type
        if b"ms-excel.sheet.binary" in types:
            return formats.XLSX  # xlsb: the same library reads it
    return formats.ARCHIVE


def _ole_type(content: bytes) -> str:
    """Old Office files, of which workbooks are read, and the shell of an encrypted new one."""
    if "EncryptedPackage".encode("utf-16-le") in content:
        raise Refused(Reason.PASSWORD_REQUIRED, "The Office document is encrypted.")
    # Names of streams. A document may have a workbook embedded in it.
    if not _has_stream(content, _OTHER_OLE) and _has_stream(content, ("Workbook", "Book")):
        return formats.XLS
    raise Refused(Reason.UNSUPPORTED_TYPE, "It is a Word or PowerPoint file of before 2007, or an Outlook message.")


def _has_stream(content: bytes, names: tuple[str, ...]) -> bool:
    return any(f"{name}\0".encode("utf-16-le") in content for name in names)


def _text_type(filename: str, text: str) -> str:
    named = _BY_SUFFIX.get(_suffix(filename))
    head = text[: 4 * _HEAD]
    start = head.lstrip("\ufeff \t\r\n\x00")
    if named in {formats.MARKDOWN, formats.RST, formats.CSV, formats.TSV, formats.JSON, formats.JSONL, formats.EML}:
        # These may all hold a piece of HTML, so only a whole page of it overrules the name.
        return formats.HTML if start.startswith("<") and _HTML.match(head) and "</html" in text.lower() else named
    if start.startswith("<"):
        if named == formats.HTML or _HTML.match(head):
            return formats.HTML
        if named == formats.XML or start.startswith("<?xml") or _XML.match(start):
            return formats.XML
    elif start.startswith(("{", "[")) and _is_json(text):
        return formats.JSON
    elif _MAIL.match(head.replace("\r\n", "\n")):
        return formats.EML
    return named if named in {formats.HTML, formats.XML} else formats.TEXT


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str, parse_float=str), dict | list)
    except (ValueError, RecursionError):
        return False
