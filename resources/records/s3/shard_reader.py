"""Shards as they are in the bucket now, at the price of what changed since this process last looked."""

from resources.records.backend import BackendCorruptError
from resources.records.s3.bucket import Bucket, NoBody
from resources.records.s3.layout import FORMAT_FILE, folder_of, object_of, read_layout, shard_named
from resources.records.s3.line import UnreadableError
from resources.records.s3.shard import Shard
from resources.records.s3.shard_cache import SHARDS_OF_THIS_PROCESS, Place, Stored

NOTHING = Stored("", Shard({}))


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
            BackendError: by what went wrong.
        """
        seen = self.last_seen(kind, number)
        name = object_of(kind, number)
        found = self._bucket.get(name, seen.etag if seen else "")
        if found is NoBody.UNCHANGED:
            assert seen is not None
            return seen
        if isinstance(found, NoBody):
            stored = self._vanished() if seen is not None and seen.etag else NOTHING
        else:
            try:
                stored = Stored(found.etag, Shard.decode(found.body, number, self.shards))
            except UnreadableError as error:
                message = f"{name}: {error} Restore this object from a backup or an earlier version."
                raise BackendCorruptError(self._bucket.uri, message) from error
        self.remember(kind, number, stored)
        return stored

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

    def _vanished(self) -> Stored:
        """We never remove an object, so somebody did; if the layout went too, another may be made any time."""
        layout = read_layout(self._bucket)
        if layout is None or layout.shards != self.shards:
            message = f"{FORMAT_FILE} is gone, or another than this process began with. Restore it, or start again."
            raise BackendCorruptError(self._bucket.uri, message)
        return NOTHING

    def _place(self, kind: str, number: int) -> Place:
        return Place(self._bucket.uri, kind, number)
