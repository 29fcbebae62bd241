"""The members of a container, a page at a time, in the child: archives, mailboxes, the attachments of mails.

Everything is inflated here and counted. Names are given as they are found; who asks gives names of his own.
"""

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

from resources.counting import counted
from resources.document_source.containers import is_archive
from resources.document_source.unpacker import UnpackedMember
from resources.document_state.reasons import Reason

from . import formats
from .archive_kinds import is_tar
from .compressed import check_size, inflate, is_compressed
from .inflate import Archive
from .limits import ParseLimits
from .mbox import is_mailbox, messages
from .result import ParseFailure, Refused, Unpacked
from .sniff import sniff

_ZIP = b"PK"
_BLOCK = 512
_COMPRESSED = (".gz", ".bz2", ".xz")
_MOST_IN_PAGE = 1000
_PAGE_BYTES = 8 << 20
_NAME_CHARS = 1024


class _Found(NamedTuple):
    """A member that may be loaded; nothing of it was inflated yet."""

    name: str
    load: Callable[[], bytes]


def unpack(filename: str, content: bytes, first: int, limits: ParseLimits) -> Unpacked | ParseFailure:
    """A page of a container's members, beginning with member number `first`."""
    try:
        return _page(members_of(filename, content, limits), first, limits)
    except Refused as refused:
        return ParseFailure(refused.reason, refused.detail)
    except MemoryError:
        return ParseFailure(
            Reason.OUT_OF_MEMORY, f"Unpacking needed more; limits.memory_bytes is {limits.memory_bytes:,}."
        )
    except RecursionError:
        return ParseFailure(Reason.TOO_DEEP, "Its parts are nested deeper than any program writes them.")
    except Exception as error:  # noqa: BLE001 - readers of archives raise anything; the container is what failed
        return ParseFailure(Reason.MALFORMED, f"It cannot be unpacked: {type(error).__name__}.")


def examine(filename: str, content: bytes, limits: ParseLimits) -> None:
    """Open an archive whole, as those do who list it, and say what its document ends as.

    Raises:
        Refused: always: `archive`, or what is wrong with it.
    """
    n_members = n_encrypted = n_bytes = 0
    for found in _counted(members_of(filename, content, limits), limits):
        n_members += 1
        try:
            n_bytes += len(found.load())
        except Refused as refused:
            if refused.reason is Reason.INFLATES_TOO_MUCH:
                raise
            n_encrypted += refused.reason is Reason.PASSWORD_REQUIRED
        check_size(n_bytes, limits)
    if not n_members:
        raise Refused(Reason.NO_TEXT, "It is an archive without a file in it.")
    if n_encrypted == n_members:
        raise Refused(Reason.PASSWORD_REQUIRED, "It is an archive, and everything in it is encrypted.")
    raise Refused(Reason.ARCHIVE, f"It is an archive of {counted(n_members, 'file')}.")


def members_of(filename: str, content: bytes, limits: ParseLimits) -> Iterator[_Found]:
    """Every member of a container, none of them loaded; what is another kind of document has none, whatever its name.

    Raises:
        Refused: it is damaged, encrypted, or of a type that nobody reads.
    """
    if not content:
        raise Refused(Reason.EMPTY_FILE, "The file has no bytes.")
    media_type = sniff(filename, content, limits).media_type
    if media_type == formats.EML:
        from .formats.mail import attachments

        yield from (_Found(name, load) for name, load in attachments(content, limits))
    elif media_type != formats.ARCHIVE:
        if is_archive(filename) and not content.startswith(_ZIP):  # it was overwritten, perhaps, and comes back
            raise Refused(Reason.MALFORMED, "Its name is that of an archive, and its content is not.")
    elif is_compressed(content):
        inflated = inflate(content, limits)
        if is_tar(inflated):
            yield from _tar_members(inflated, limits)
        else:
            path = PurePosixPath(filename)
            yield _Found(path.stem if path.suffix.lower() in _COMPRESSED else path.name, lambda: inflated)
    elif is_tar(content):
        yield from _tar_members(content, limits)
    elif is_mailbox(filename, content):
        yield from (_Found(name, partial(bytes, message)) for name, message in messages(content))
    else:
        yield from _zip_members(content, limits)


def _page(found: Iterator[_Found], first: int, limits: ParseLimits) -> Unpacked:
    members: list[UnpackedMember] = []
    n_bytes = 0
    page_bytes = min(_PAGE_BYTES, limits.reply_bytes // 8)
    for number, (name, load) in enumerate(_counted(found, limits)):
        if number < first:
            continue
        if len(members) == _MOST_IN_PAGE or n_bytes >= page_bytes:
            return Unpacked(members, is_last=False)
        members.append(_loaded(name.encode("utf-8", "replace").decode()[:_NAME_CHARS], load, limits))
        n_bytes += len(members[-1].content)
        check_size(n_bytes, limits)
    return Unpacked(members, is_last=True)


def _loaded(name: str, load: Callable[[], bytes], limits: ParseLimits) -> UnpackedMember:
    try:
        content = load()
    except Refused as refused:
        if refused.reason is Reason.INFLATES_TOO_MUCH:
            raise
        return UnpackedMember(name, b"", refused.reason, refused.detail)
    most = limits.reply_bytes // 2
    if len(content) > most:
        return UnpackedMember(
            name, b"", Reason.TOO_LARGE,
            f"It has {len(content):,} bytes; what lies in a container may have {most:,}, by limits.text_chars.",
        )  # fmt: skip
    return UnpackedMember(name, content)


def _counted(found: Iterator[_Found], limits: ParseLimits) -> Iterator[_Found]:
    for number, member in enumerate(found):
        if number == limits.archive_entries:
            raise Refused(Reason.TOO_LARGE, f"It has more members; limits.archive_entries is {number:,}.")
        yield member


def _zip_members(content: bytes, limits: ParseLimits) -> Iterator[_Found]:
    archive = Archive(content, limits)
    for entry in archive.entries:
        if not entry.is_dir() and not stat.S_ISLNK(entry.external_attr >> 16):
            yield _Found(entry.filename, _zip_loader(archive, entry))


def _zip_loader(archive: Archive, entry: zipfile.ZipInfo) -> Callable[[], bytes]:
    def load() -> bytes:
        data = archive.inflate(entry)
        if len(data) != entry.file_size or zlib.crc32(data) != entry.CRC:
            raise Refused(Reason.MALFORMED, "It is damaged in its archive: its checksum or size differs.")
        return data

    return load


def _tar_members(content: bytes, limits: ParseLimits) -> Iterator[_Found]:
    """Regular files of a tar; links and devices are none.

    The library takes a damaged header for the end, so the end is looked at.
    """
    damaged = Refused(Reason.MALFORMED, "The tar archive is damaged or cut off.")
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as file:
            for entry in file:
                if entry.isreg():
                    yield _Found(entry.name, _tar_loader(file, entry, limits))
            if content[file.offset : file.offset + _BLOCK] != bytes(_BLOCK):
                raise damaged
    except (tarfile.TarError, ValueError, OSError) as error:
        raise damaged from error


def _tar_loader(file: tarfile.TarFile, entry: tarfile.TarInfo, limits: ParseLimits) -> Callable[[], bytes]:
    def load() -> bytes:
        reader = file.extractfile(entry)
        data = reader.read(limits.inflated_bytes + 1) if reader else b""  # holes are read as zeros, and counted
        check_size(len(data), limits)
        return data

    return load
