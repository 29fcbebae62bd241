"""A container opened with all that lies in it, containers in it included."""

import hashlib
import tempfile
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from resources.document_source.containers import is_archive, is_container, names_of_ours
from resources.document_source.document_ids import MEMBER
from resources.document_source.document_source import ReadError
from resources.document_source.unpacker import UnpackedMember, Unpacker, UnpackError
from resources.document_state.reasons import Reason

# More than this of a container goes to a file without a name, so that memory does not grow with archives.
_IN_MEMORY_BYTES = 1 << 20


class TreeLimits(NamedTuple):
    """What one container may hold, with all that lies in it: the limits of a single document."""

    nesting: int
    members: int
    n_bytes: int


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A member as it is listed.

    Attributes:
        path: what follows its outermost container's `!/`, as in a source URI.
        version: 32 hex digits of the content's hash, so that it changes only when the member itself does.
        size: its bytes.
        is_unlisted: a container whose own members are not known.
    """

    path: str
    version: str
    size: int
    is_unlisted: bool = False


class _Kept(NamedTuple):
    start: int
    size: int
    version: str
    reason: Reason | None
    detail: str


class MemberTree:
    """An opened container. Not for several threads at once."""

    def __init__(self, filename: str, content: bytes, unpacker: Unpacker, limits: TreeLimits) -> None:
        """Open a container.

        Raises:
            UnpackError: it cannot be opened whole. A container in it that cannot does not count: it is marked.
        """
        self.members: list[Member] = []
        self.n_bytes = 0
        self._unpacker = unpacker
        self._limits = limits
        self._n_members = 0
        self._kept: dict[str, _Kept] = {}
        self._spool = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - it lives as long as this
        try:
            self._add_all(filename, content, "", 1)
        except BaseException:
            self.close()
            raise

    def read(self, path: str, max_bytes: int) -> bytes:
        """The bytes of a member.

        Raises:
            ReadError: it is not there any more, cannot be had from its container, or is larger than `max_bytes`.
        """
        kept = self._kept.get(path)
        if kept is None:
            raise ReadError(Reason.VANISHED, "It is not in its container any more.")
        if kept.reason is not None:
            raise ReadError(kept.reason, kept.detail)
        if kept.size > max_bytes:
            raise ReadError(Reason.TOO_LARGE, f"It has {kept.size:,} bytes; limits.file_bytes is {max_bytes:,}.")
        return self._bytes_of(kept)

    def close(self) -> None:
        """Give up what was unpacked."""
        self._spool.close()

    def _add_all(self, filename: str, content: bytes, start: str, depth: int) -> None:
        """Add the members of a container whose paths begin with `start`, and theirs."""
        names: list[str] = []
        found: list[_Kept] = []
        for member in self._unpacker.unpack(filename, content):
            names.append(member.name)
            found.append(self._keep(member))
        for name, kept in zip(names_of_ours(names), found, strict=True):
            self._add(name, start + quote(name), kept, depth)

    def _add(self, name: str, path: str, kept: _Kept, depth: int) -> None:
        place = len(self.members)
        self.members.append(Member(path, kept.version, kept.size))
        self._kept[path] = kept
        if kept.reason is not None or not is_container(name):
            return
        try:
            self._check_depth(depth)
            self._add_all(name, self._bytes_of(kept), f"{path}{MEMBER}", depth + 1)
        except UnpackError as error:
            self.members[place] = Member(path, kept.version, kept.size, is_unlisted=True)
            if is_archive(name):  # a mail has a text of its own all the same
                self._kept[path] = kept._replace(reason=error.reason, detail=str(error))

    def _check_depth(self, depth: int) -> None:
        if depth >= self._limits.nesting:
            raise UnpackError(Reason.TOO_DEEP, f"Containers lie in each other deeper; limits.nesting is {depth}.")

    def _keep(self, member: UnpackedMember) -> _Kept:
        self._n_members += 1
        self.n_bytes += len(member.content)
        if self._n_members > self._limits.members:
            raise UnpackError(
                Reason.TOO_LARGE,
                f"With all that lies in it, it has more members; limits.archive_entries is {self._limits.members:,}.",
            )
        if self.n_bytes > self._limits.n_bytes:
            raise UnpackError(
                Reason.INFLATES_TOO_MUCH,
                f"With all that lies in it, it unpacks to more; limits.inflated_bytes is {self._limits.n_bytes:,}.",
            )
        start = self._spool.seek(0, 2)
        self._spool.write(member.content)
        return _Kept(start, len(member.content), content_hash(member), member.reason, member.detail)

    def _bytes_of(self, kept: _Kept) -> bytes:
        self._spool.seek(kept.start)
        return self._spool.read(kept.size)


def content_hash(member: UnpackedMember) -> str:
    """The version of a member: a hash of its content, and of why that is not to be had."""
    digest = hashlib.sha256(member.content)
    digest.update(f"{member.reason or ''}".encode())
    return digest.hexdigest()[:32]
