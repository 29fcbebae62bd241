"""Shards as they are in the bucket now, at the price of what changed since this process last looked."""

from collections.abc import Iterator
from contextlib import contextmanager

from resources.records.backend import BackendCorruptError, BackendUnavailableError
from resources.records.s3.bucket import Bucket, NoBody
from resources.records.s3.layout import FORMAT_FILE, base_of, folder_of, object_of, read_layout, shard_named
from resources.records.s3.line import UnreadableError
from resources.records.s3.objects import decode_base, decode_head
from resources.records.s3.shard import NO_BASE, Base, Shard
from resources.records.s3.shard_cache import SHARDS_OF_THIS_PROCESS, Place, Stored

NOTHING = Stored("", Shard({}))
_READINGS = 10  # of a head, while others give it new bases and remove the old
_RESTORE = "Restore this object from a backup or an earlier version."


class ShardReader:
    """Reads the shards of one store."""

    def __init__(self, bucket: Bucket, shards: int) -> None:
        self._bucket = bucket
        self.shards = shards
        self._cache = SHARDS_OF_THIS_PROCESS

    def last_seen(self, kind: str, number: int) -> Stored | None:
        """A shard as this process saw or wrote it last. It may have changed since."""
        return self._cache.get(self._place(kind, number))

    def remember(self, kind: str, number: int, stored: Stored) -> None:
        """Note what this process has written."""
        self._cache.put(self._place(kind, number), stored)

    def read(self, kind: str, number: int) -> Stored:
        """A shard as it is now.

        Raises:
            BackendCorruptError: it cannot be read whole; nothing may be written from it.
            BackendUnavailableError: it got new bases faster than it could be read.
            BackendError: by what went wrong.
        """
        seen = self.last_seen(kind, number)
        name = object_of(kind, number)
        without_base = ""
        for _ in range(_READINGS):
            found = self._bucket.get(name, seen.etag if seen else "")
            if found is NoBody.UNCHANGED:
                assert seen is not None
                return seen
            if isinstance(found, NoBody):
                stored = self._vanished() if seen is not None and seen.etag else NOTHING
                self.remember(kind, number, stored)
                return stored
            with self._reading(name):
                head = decode_head(found.body, number, self.shards)
            base = self._base(kind, number, head.base, seen)
            if base is not None:
                with self._reading(name):
                    stored = Stored(found.etag, head.on(base))
                self.remember(kind, number, stored)
                return stored
            if found.etag == without_base:
                gone = f"{base_of(kind, number, head.base)} is gone, and {name} needs it. {_RESTORE}"
                raise BackendCorruptError(self._bucket.uri, gone)
            without_base = found.etag
        raise BackendUnavailableError(self._bucket.uri, f"{name}: it changed {_READINGS} times meanwhile. Try again.")

    def etags(self, kind: str) -> dict[int, str]:
        """The ETag of each shard of a kind that has an object, by one listing.

        Raises:
            BackendCorruptError: there is a shard that the layout does not have.
            BackendError: by what went wrong.
        """
        found = {}
        for name, etag in self._bucket.list(folder_of(kind)).items():
            shard = shard_named(name)
            if shard is None:
                continue
            if shard[1] >= self.shards:
                raise BackendCorruptError(self._bucket.uri, f"{name}: the layout has {self.shards} shards.")
            found[shard[1]] = etag
        return dict(sorted(found.items()))

    def read_listed(self, kind: str, number: int, etag: str) -> Stored:
        """A shard whose ETag a listing gave, read only if it is not the one seen last.

        Raises:
            BackendCorruptError: it cannot be read whole.
            BackendError: by what went wrong.
        """
        seen = self.last_seen(kind, number)
        return seen if seen is not None and seen.etag == etag else self.read(kind, number)

    def kinds(self) -> dict[str, dict[int, str]]:
        """The ETags of all shards of all kinds that have objects, by one listing.

        Raises:
            BackendError: by what went wrong.
        """
        found: dict[str, dict[int, str]] = {}
        for name, etag in self._bucket.list("").items():
            shard = shard_named(name)
            if shard is not None:
                found.setdefault(shard[0], {})[shard[1]] = etag
        return found

    def _base(self, kind: str, number: int, base_id: str, seen: Stored | None) -> Base | None:
        """The base a head names; None: it is gone. Whoever put another head may have removed it meanwhile."""
        if not base_id:
            return NO_BASE
        if seen is not None and seen.shard.base.id == base_id:
            return seen.shard.base
        name = base_of(kind, number, base_id)
        found = self._bucket.get(name)
        if isinstance(found, NoBody):
            return None
        with self._reading(name):
            return decode_base(base_id, found.body, number, self.shards)

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Say which object it is that cannot be read."""
        try:
            yield
        except UnreadableError as error:
            raise BackendCorruptError(self._bucket.uri, f"{name}: {error} {_RESTORE}") from error

    def _vanished(self) -> Stored:
        """We never remove a head, so somebody did; if the layout went too, another may be made any time."""
        layout = read_layout(self._bucket)
        if layout is None or layout.shards != self.shards:
            message = f"{FORMAT_FILE} is gone, or another than this process began with. Restore it, or start again."
            raise BackendCorruptError(self._bucket.uri, message)
        return NOTHING

    def _place(self, kind: str, number: int) -> Place:
        return Place(self._bucket.uri, kind, number)
