"""Documents in a folder."""

import os
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from resources.document_source.document_ids import key_of, source_uri
from resources.document_source.document_source import DocumentSource, ReadError, ReadResult, SourceError, SourceObject
from resources.document_state.reasons import Reason

DEFAULT_EXCLUDE = (".*", "~$*")
# A file written this recently may be written again within one step of the file system's clock, which its time would
# not show. Such a file is read twice and compared.
_YOUNG_NS = 2_000_000_000


class LocalSource(DocumentSource):
    """A folder and all below it.

    Symbolic links are followed only to files that lie inside the folder; nothing outside it is ever read. Names
    matching `exclude` (at any level) are left out, as are special files.
    """

    def __init__(self, name: str, root: Path, org_id: str, exclude: Sequence[str] = DEFAULT_EXCLUDE) -> None:
        self.name = name
        self.org_id = org_id
        self.root = root
        self.uri = root.absolute().as_uri()
        self._root = os.fsencode(root)
        self._exclude = tuple(exclude)

    def list_objects(self, prefix: bytes = b"") -> Iterator[SourceObject]:
        """See DocumentSource."""
        if not os.path.isdir(self._root):  # noqa: PTH112 - bytes paths: names that are no text
            raise SourceError(self.name, f"folder {self.root} does not exist. Create it, or correct its uri.")
        start = os.path.join(self._root, prefix)  # noqa: PTH118
        real_root = os.path.realpath(self._root)
        if os.path.isfile(start):  # noqa: PTH113
            yield from self._objects_in(os.path.dirname(start), real_root, only=os.path.basename(start))  # noqa: PTH119, PTH120
            return
        folders = [start.rstrip(b"/")]
        while folders:
            yield from self._objects_in(folders.pop(), real_root, folders=folders)

    def read(self, source_uri: str, max_bytes: int) -> ReadResult:
        """See DocumentSource."""
        path = os.path.join(self._root, key_of(source_uri))  # noqa: PTH118
        try:
            if not _inside(os.path.realpath(path), os.path.realpath(self._root)):
                raise ReadError(Reason.ACCESS_DENIED, "It lies outside its source's folder.")
            return _read_unchanged(path, max_bytes)
        except FileNotFoundError as error:
            raise ReadError(Reason.VANISHED, "The file is gone.") from error
        except PermissionError as error:
            raise ReadError(Reason.ACCESS_DENIED, "The file may not be read by this user.") from error
        except OSError as error:
            raise ReadError(Reason.SOURCE_UNAVAILABLE, f"Reading failed: {error.strerror}.") from error

    def _objects_in(
        self, folder: bytes, real_root: bytes, *, folders: list[bytes] | None = None, only: bytes | None = None
    ) -> Iterator[SourceObject]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if (only is not None and entry.name != only) or self._is_excluded(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if folders is not None:
                            folders.append(entry.path)
                    elif (found := self._object(entry, real_root)) is not None:
                        yield found
        except OSError as error:
            shown = os.fsdecode(os.path.relpath(folder, self._root))
            raise SourceError(
                self.name, f"cannot list '{shown}': {error.strerror}. Nothing was concluded from this listing."
            ) from error

    def _object(self, entry: "os.DirEntry[bytes]", real_root: bytes) -> SourceObject | None:
        if entry.is_symlink() and not _inside(os.path.realpath(entry.path), real_root):
            return None
        try:
            if not entry.is_file():
                return None
            stat = entry.stat()
        except FileNotFoundError:
            return None  # it went between being listed and being looked at
        key = entry.path[len(self._root) :].lstrip(b"/")
        return SourceObject(source_uri(self.name, key), _version(stat), stat.st_size)

    def _is_excluded(self, name: bytes) -> bool:
        text = os.fsdecode(name)
        return any(fnmatchcase(text, pattern) for pattern in self._exclude)


def _read_unchanged(path: bytes, max_bytes: int) -> ReadResult:
    with open(path, "rb") as file:  # noqa: PTH123
        before = os.fstat(file.fileno())
        if before.st_size > max_bytes:
            raise ReadError(Reason.TOO_LARGE, f"It has {before.st_size:,} bytes; limits.file_bytes is {max_bytes:,}.")
        content = file.read(max_bytes + 1)
        if time.time_ns() - before.st_mtime_ns < _YOUNG_NS:
            file.seek(0)
            if file.read(max_bytes + 1) != content:
                raise ReadError(Reason.CHANGED_WHILE_READING, "Its content changed while it was read.")
        after = os.fstat(file.fileno())
    now = os.stat(path)  # noqa: PTH116
    if not _version(before) == _version(after) == _version(now) or len(content) != before.st_size:
        raise ReadError(Reason.CHANGED_WHILE_READING, "It changed while it was read.")
    return ReadResult(content, _version(after))


def _version(stat: os.stat_result) -> str:
    return f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ino}"


def _inside(path: bytes, root: bytes) -> bool:
    return path == root or path.startswith(root.rstrip(b"/") + b"/")
