"""Looking into a zip before a library does: entries counted, every byte inflated and counted, nothing believed.

Headers lie about sizes, so each member is inflated here from its raw bytes; members that overlap are
counted once each. Names are only compared, never used as paths.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator

from resources.document_state.reasons import Reason

from .limits import ParseLimits
from .result import Refused

_STEP = 1 << 20
_LOCAL_HEADER = 30
_ENCRYPTED = 0x1
_DECLARATION = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_XML_SUFFIXES = (".xml", ".rels", ".vml")


class Archive:
    """A zip whose table of contents has been accepted."""

    def __init__(self, content: bytes, limits: ParseLimits) -> None:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                entries = file.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise Refused(Reason.MALFORMED, "The zip container is damaged.") from error
        if len(entries) > limits.archive_entries:
            raise Refused(
                Reason.TOO_LARGE,
                f"It has {len(entries):,} entries; limits.archive_entries is {limits.archive_entries:,}.",
            )
        self._content = content
        self._limits = limits
        self._inflated = 0
        self._by_name = {entry.filename: entry for entry in entries}
        self.entries = entries

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def read(self, name: str, most: int | None = None) -> bytes:
        """A member's bytes, or its first `most`.

        Raises:
            Refused: `inflates_too_much`, `password_required`, `malformed`.
        """
        entry = self._by_name.get(name)
        if entry is None:
            raise Refused(Reason.MALFORMED, "A part that must be there is missing.")
        return self._inflate(entry, most)

    def inflate(self, entry: zipfile.ZipInfo) -> bytes:
        """The bytes of one of `entries`, whose name another may have as well.

        Raises:
            Refused: `inflates_too_much`, `password_required`, `malformed`.
        """
        return self._inflate(entry, None)

    def check(self, examine: Callable[[str, bytes], None]) -> None:
        """Inflate every member once, and have its name and bytes looked at by a function that may refuse them."""
        for entry in self.entries:
            examine(entry.filename, self._inflate(entry, None))

    def _inflate(self, entry: zipfile.ZipInfo, most: int | None) -> bytes:
        if entry.flag_bits & _ENCRYPTED:
            raise Refused(Reason.PASSWORD_REQUIRED, "The zip container is encrypted.")
        raw = self._raw(entry)
        budget = self._limits.inflated_bytes - self._inflated
        wanted = budget + 1 if most is None else min(most, budget + 1)
        if entry.compress_type == zipfile.ZIP_STORED:
            data = bytes(raw[:wanted])
        elif entry.compress_type == zipfile.ZIP_DEFLATED:
            data = _deflated(raw, wanted)
        else:
            raise Refused(Reason.MALFORMED, "The zip container uses a compression that documents do not have.")
        self._inflated += len(data)
        if self._inflated > self._limits.inflated_bytes:
            raise Refused(
                Reason.INFLATES_TOO_MUCH,
                f"It unpacks to more; limits.inflated_bytes is {self._limits.inflated_bytes:,}.",
            )
        return data

    def _raw(self, entry: zipfile.ZipInfo) -> memoryview:
        view = memoryview(self._content)
        header = view[entry.header_offset : entry.header_offset + _LOCAL_HEADER]
        if len(header) < _LOCAL_HEADER or bytes(header[:4]) != b"PK\x03\x04":
            raise Refused(Reason.MALFORMED, "The zip container is damaged.")
        start = entry.header_offset + _LOCAL_HEADER
        start += int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        return view[start : start + entry.compress_size]


def _deflated(raw: memoryview, wanted: int) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    chunks: list[bytes] = []
    pending: bytes | memoryview = raw
    try:
        while wanted > 0 and not inflater.eof:
            chunk = inflater.decompress(pending, min(wanted, _STEP))
            if not chunk and not inflater.unconsumed_tail:
                break
            chunks.append(chunk)
            wanted -= len(chunk)
            pending = inflater.unconsumed_tail
    except zlib.error as error:
        raise Refused(Reason.MALFORMED, "A part of the zip container is damaged.") from error
    return b"".join(chunks)


def refuse_declarations(name: str, xml: bytes) -> None:
    """Refuse a part that is XML and declares a document type or entities: Office never writes one, bombs are made so.

    Raises:
        Refused: `malformed`.
    """
    if not name.lower().endswith(_XML_SUFFIXES):
        return
    if _DECLARATION.search(xml.replace(b"\x00", b"") if b"\x00" in xml else xml):
        raise Refused(Reason.MALFORMED, "An XML part declares a DOCTYPE or entities, which is not allowed.")


def refuse_entities(xml: bytes) -> None:
    """Refuse XML that declares entities; a bare document type, as XHTML has it, is harmless.

    Raises:
        Refused: `malformed`.
    """
    if b"<!ENTITY" in (xml.replace(b"\x00", b"") if b"\x00" in xml else xml):
        raise Refused(Reason.MALFORMED, "It declares entities, which is not allowed.")


def zip_names(content: bytes, limits: ParseLimits) -> Archive:
    """The table of contents of a zip, refused when it has too many entries."""
    return Archive(content, limits)
