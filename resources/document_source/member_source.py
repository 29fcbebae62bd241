"""A source whose archives and mails are opened: what lies in them are objects of their own.

A member has its container's URI, `!/` and its path there, so it is listed, changes and vanishes as any object does.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_to_bytes

from resources.document_source.containers import is_container
from resources.document_source.document_ids import MEMBER, shown_key, split_member
from resources.document_source.document_source import DocumentSource, ReadError, ReadResult, SourceObject
from resources.document_source.exclusion import Exclusion
from resources.document_source.left_out import LeftOut
from resources.document_source.member_tables import MemberTable, MemberTables
from resources.document_source.member_tree import MemberTree, TreeLimits
from resources.document_source.unpacker import Unpacker, UnpackError
from resources.document_state.reasons import Reason, Remedy

# Members of a container are often read one after the other: it is opened once for all of them.
_MOST_OPEN = 64
_MOST_OPEN_BYTES = 256 << 20


class MemberSource(DocumentSource):
    """Another source, and what lies in its containers.

    Containers are known by their names, opened when they are listed at a new version, and again when a member is read.
    What cannot be opened is marked in the listing: nothing in it may be taken to have vanished.
    """

    def __init__(
        self,
        inner: DocumentSource,
        unpacker: Unpacker,
        tables: MemberTables,
        limits: TreeLimits,
        max_file_bytes: int,
        exclude: Sequence[str],
    ) -> None:
        """Nothing is asked of the source before it is used.

        Args:
            inner: the source.
            unpacker: opens containers.
            tables: where it is kept what lies in them.
            limits: what one container may hold.
            max_file_bytes: a larger container is not read.
            exclude: names of members to leave out.
        """
        self.inner = inner
        self.kind, self.name, self.org_id, self.uri = inner.kind, inner.name, inner.org_id, inner.uri
        self.parallel_reads = inner.parallel_reads
        self._unpacker = unpacker
        self._tables = tables
        self._limits = limits
        self._max_file_bytes = max_file_bytes
        self._exclusion = Exclusion(exclude)
        self._opened: OrderedDict[str, tuple[str, MemberTree]] = OrderedDict()
        self._lock = threading.Lock()

    def list_objects(self, prefix: bytes = b"", left_out: LeftOut | None = None) -> Iterator[SourceObject]:
        """See DocumentSource; a container comes before its members."""
        left_out = LeftOut() if left_out is None else left_out
        before = self._tables.read()
        now: dict[str, MemberTable] = {}
        is_whole = False
        try:
            for item in self.inner.list_objects(prefix, left_out):
                if not is_container(item.source_uri):
                    yield item
                    continue
                table = before.get(item.source_uri)
                if table is None or table.version != item.content_version:
                    table = self._open(item)
                if table.version:
                    now[item.source_uri] = table
                yield from self._listed(item, table, left_out)
            is_whole = not prefix
        finally:
            after = now if is_whole else before | now
            if after != before:
                self._tables.write(after)

    def read(self, source_uri: str, max_bytes: int) -> ReadResult:
        """See DocumentSource; the version of a member is its content's hash."""
        container, path = split_member(source_uri)
        if not path:
            return self.inner.read(source_uri, max_bytes)
        with self._lock:
            try:
                content = self._tree_of(container).read(path, max_bytes)
            except UnpackError as error:
                raise ReadError(error.reason, f"'{shown_key(container)}', in which it lies: {error}") from error
        return ReadResult(content, hashlib.sha256(content).hexdigest()[:32])

    def current_version(self, source_uri: str) -> str:
        """See DocumentSource."""
        container, path = split_member(source_uri)
        return (
            self.read(source_uri, self._max_file_bytes).content_version
            if path
            else self.inner.current_version(container)
        )

    def key_of_place(self, place: str) -> bytes | None:
        """See DocumentSource."""
        return self.inner.key_of_place(place)

    def key_of_source(self, other: DocumentSource) -> bytes | None:
        """See DocumentSource."""
        return self.inner.key_of_source(other.inner if isinstance(other, MemberSource) else other)

    def _listed(self, item: SourceObject, table: MemberTable, left_out: LeftOut) -> Iterator[SourceObject]:
        uri = item.source_uri
        yield SourceObject(uri, item.content_version, item.size, is_unlisted=table.is_unlisted)
        for member in table.members:
            member_uri = f"{uri}{MEMBER}{member.path}"
            if why := self._exclusion.why(unquote_to_bytes(member.path.replace(MEMBER, "/"))):
                left_out.add(why, shown_key(member_uri))
            else:
                yield SourceObject(member_uri, member.version, member.size, is_unlisted=member.is_unlisted)

    def _open(self, item: SourceObject) -> MemberTable:
        """What lies in a container. The version is "" if that may be otherwise the next time."""
        with self._lock:
            try:
                tree = self._tree_of(item.source_uri)
                version = self._opened[item.source_uri][0]
                return MemberTable(version if version == item.content_version else "", tree.members)
            except (ReadError, UnpackError) as error:
                is_final = error.reason.remedy is Remedy.FINAL or error.reason is Reason.PASSWORD_REQUIRED
                return MemberTable(item.content_version if is_final else "", [], is_unlisted=True)

    def _tree_of(self, container: str) -> MemberTree:
        """A container as it is now. Whoever calls it holds the lock until the tree was read."""
        kept = self._opened.pop(container, None)
        if kept is not None:
            if kept[0] == self.inner.current_version(container):
                self._opened[container] = kept
                return kept[1]
            kept[1].close()
        found = self.inner.read(container, self._max_file_bytes)
        tree = MemberTree(shown_key(container).rpartition("/")[2], found.content, self._unpacker, self._limits)
        self._opened[container] = found.content_version, tree
        while len(self._opened) > 1 and (
            len(self._opened) > _MOST_OPEN or sum(t.n_bytes for _, t in self._opened.values()) > _MOST_OPEN_BYTES
        ):
            _, (_, oldest) = self._opened.popitem(last=False)
            oldest.close()
        return tree
