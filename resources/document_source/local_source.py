"""Documents in a folder."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from resources.document_source.document_ids import key_of, shown_key, source_uri
from resources.document_source.document_source import DocumentSource, ReadError, ReadResult, SourceError, SourceObject
from resources.document_source.exclusion import DEFAULT_EXCLUDE, Exclusion
from resources.document_source.left_out import LeftOut, WhyLeftOut
from resources.document_source.open_below import Opener, opener_below
from resources.document_source.own_files import NO_OWN_FILES, OwnFiles
from resources.document_state.reasons import Reason

# A file written this recently may be written again within one step of the file system's clock, which its time would
# not show. Such a file is read twice and compared.
_YOUNG_NS = 2_000_000_000
_LEADS_NOWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})

T = TypeVar("T")


class LocalSource(DocumentSource):
    """A folder and all below it.

    Symbolic links are followed only to files that lie inside the folder; nothing outside it is ever read. Names
    matching `exclude` (at any level) are left out, as are special files and what this program keeps. All that is left
    out is counted.
    """

    kind = "folder"

    def __init__(
        self,
        name: str,
        root: Path,
        org_id: str,
        exclude: Sequence[str] = DEFAULT_EXCLUDE,
        own: OwnFiles = NO_OWN_FILES,
    ) -> None:
        self.name = name
        self.org_id = org_id
        self.root = root
        self.uri = root.absolute().as_uri()
        self._root = os.fsencode(root)
        self._exclusion = Exclusion(exclude)
        self._own = own

    def list_objects(self, prefix: bytes = b"", left_out: LeftOut | None = None) -> Iterator[SourceObject]:
        """See DocumentSource."""
        left_out = LeftOut() if left_out is None else left_out
        if not os.path.isdir(self._root):  # noqa: PTH112 - bytes paths: names that are no text
            raise SourceError(self.name, f"folder {self.root} does not exist. Create it, or correct its uri.")
        if self._exclusion.why(prefix):
            left_out.add(WhyLeftOut.EXCLUDED, self._shown(os.path.join(self._root, prefix)))  # noqa: PTH118
            return
        start = os.path.join(self._root, prefix).rstrip(b"/") if prefix else self._root  # noqa: PTH118
        real_root = os.path.realpath(self._root)
        self._check_is_not_own(os.path.realpath(start))
        if os.path.isfile(start):  # noqa: PTH113
            folder, only = os.path.split(start)
            self._check_lies_inside(folder, real_root)
            yield from self._objects_in(folder, real_root, left_out, only=only)
            return
        self._check_lies_inside(start, real_root)
        folders = [start]
        failed: list[SourceError] = []
        while folders:
            try:
                yield from self._objects_in(folders.pop(), real_root, left_out, folders=folders)
            except SourceError as error:
                failed.append(error)
        if failed:
            first, more = failed[0], len(failed) - 1
            message = str(first).partition(": ")[2] + (f" (and {more} folders more)" if more else "")
            raise SourceError(self.name, message, partial=True)

    def read(self, source_uri: str, max_bytes: int) -> ReadResult:
        """See DocumentSource."""
        return self._asked(source_uri, lambda path, opener: _read_unchanged(path, opener, max_bytes))

    def current_version(self, source_uri: str) -> str:
        """See DocumentSource."""
        return self._asked(source_uri, lambda path, _: _version(os.stat(path)))  # noqa: PTH116

    def _asked(self, source_uri: str, ask: Callable[[bytes, Opener], T]) -> T:
        """What the file of an object answers."""
        path = os.path.join(self._root, key_of(source_uri))  # noqa: PTH118
        try:
            straight, real_root = os.path.realpath(path), os.path.realpath(self._root)
            if not _inside(straight, real_root):
                raise ReadError(Reason.ACCESS_DENIED, "It lies outside its source's folder.")
            return ask(path, opener_below(real_root, straight))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise ReadError(Reason.VANISHED, "The file is gone.") from error
        except PermissionError as error:
            raise ReadError(Reason.ACCESS_DENIED, "The file may not be read by this user.") from error
        except OSError as error:
            raise ReadError(Reason.SOURCE_UNAVAILABLE, f"Reading failed: {error.strerror}.") from error

    def key_of_place(self, place: str) -> bytes | None:
        """See DocumentSource: a place is a path, relative to the working directory or absolute."""
        path = Path(os.path.abspath(place))  # noqa: PTH100 - `..` is to be resolved, links are not
        if place.startswith("s3://") or not path.is_relative_to(self.root):
            return None
        relative = path.relative_to(self.root)
        return b"" if relative == Path() else os.fsencode(relative)

    def key_of_source(self, other: DocumentSource) -> bytes | None:
        """See DocumentSource: folders are compared free of links, since a listing follows no link to a folder."""
        if not isinstance(other, LocalSource):
            return None
        real_root, inner = os.path.realpath(self._root), os.path.realpath(os.fsencode(other.root))
        key = inner[len(real_root) :].lstrip(b"/")
        return key if _inside(inner, real_root) and not self._exclusion.why(key) else None

    def _check_lies_inside(self, folder: bytes, real_root: bytes) -> None:
        """A prefix names what a listing of everything would give too: below the root, and not by way of a link."""
        relative = os.path.relpath(folder, self._root)
        straight = os.path.normpath(os.path.join(real_root, relative))  # noqa: PTH118
        if os.path.realpath(folder) != straight or not _inside(straight, real_root):
            shown = os.fsdecode(relative)
            raise SourceError(self.name, f"'{shown}' does not lie in folder {self.root}, or is reached by a link.")

    def _check_is_not_own(self, straight: bytes) -> None:
        if self._own.holds(straight):
            shown = os.fsdecode(straight)
            raise SourceError(self.name, f"'{shown}' is kept by this program itself. Name a folder of documents.")

    def _objects_in(
        self,
        folder: bytes,
        real_root: bytes,
        left_out: LeftOut,
        *,
        folders: list[bytes] | None = None,
        only: bytes | None = None,
    ) -> Iterator[SourceObject]:
        try:
            below = os.path.join(folder, b"")  # noqa: PTH118
            straight = os.path.join(real_root, self._key(below))  # noqa: PTH118
            # By the open folder, not by its path: while that is renamed, every entry would seem to have gone.
            with _opened_folder(folder) as at, os.scandir(at) as entries:
                for entry in entries:
                    name = os.fsencode(entry.name)
                    path = below + name
                    if only is not None and name != only:
                        continue
                    if why := self._exclusion.why(name):
                        left_out.add(why, self._shown(path))
                    elif self._own.has(straight + name):
                        left_out.add(WhyLeftOut.OWN, self._shown(path))
                    elif entry.is_dir(follow_symlinks=False):
                        if folders is not None:
                            folders.append(path)
                    elif isinstance(found := self._object(entry, path, real_root), SourceObject):
                        yield found
                    elif found is not None:
                        left_out.add(found, self._shown(path))
        except OSError as error:
            shown = os.fsdecode(os.path.relpath(folder, self._root))
            raise SourceError(
                self.name,
                f"cannot list '{shown}': {error.strerror}. Nothing is taken to have vanished from this source.",
            ) from error

    def _object(self, entry: "os.DirEntry[str]", path: bytes, real_root: bytes) -> SourceObject | WhyLeftOut | None:
        """What an entry is that is no folder; None: it went between being listed and being looked at."""
        if entry.is_symlink():
            straight = os.path.realpath(path)
            if not _inside(straight, real_root):
                return WhyLeftOut.LINK_OUT
            if self._own.holds(straight):
                return WhyLeftOut.OWN
        try:
            found = entry.stat()
        except OSError as error:
            if error.errno in _LEADS_NOWHERE:
                return WhyLeftOut.BROKEN_LINK if entry.is_symlink() else None
            raise
        if stat.S_ISDIR(found.st_mode):
            return WhyLeftOut.LINK_TO_FOLDER
        if not stat.S_ISREG(found.st_mode):
            return WhyLeftOut.SPECIAL_FILE
        return SourceObject(source_uri(self.name, self._key(path)), _version(found), found.st_size)

    def _key(self, path: bytes) -> bytes:
        return path[len(self._root) :].lstrip(b"/")

    def _shown(self, path: bytes) -> str:
        """A path below the source's folder, for people."""
        return shown_key(source_uri(self.name, self._key(path)))


@contextlib.contextmanager
def _opened_folder(path: bytes) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _read_unchanged(path: bytes, opener: Opener, max_bytes: int) -> ReadResult:
    with open(path, "rb", opener=opener) as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise ReadError(Reason.VANISHED, "It is no regular file any more.")
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


def _version(found: os.stat_result) -> str:
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ino}"


def _inside(path: bytes, root: bytes) -> bool:
    return path == root or path.startswith(root.rstrip(b"/") + b"/")
