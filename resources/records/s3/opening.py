"""The first steps in a store: what its layout is, whether its endpoint can be trusted, and making it."""

import threading

from resources.records.backend import BackendCorruptError
from resources.records.s3.bucket import Bucket
from resources.records.s3.layout import FORMAT_FILE, make_layout, read_layout, shard_named
from resources.records.s3.probe import probe
from resources.records.s3.shard_reader import ShardReader

_proven: set[str] = set()  # stores whose endpoint this process has seen to honour conditions


class Opening:
    """Opens a store when it is first used. Blocks; safe for threads."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self.reader: ShardReader | None = None

    @property
    def is_proven(self) -> bool:
        """Whether this process may write."""
        return self._bucket.uri in _proven

    def for_reading(self) -> ShardReader | None:
        """A reader of the store; None: nobody has made it yet, so there is nothing to read.

        Raises:
            BackendCorruptError: it has lost its layout.
            BackendError: by what went wrong.
        """
        with self._lock:
            return self._look()

    def for_writing(self, shards: int) -> ShardReader:
        """A reader of the store, which is made if need be, once its endpoint is seen to honour conditions.

        Raises:
            BackendError: it does not, or by what went wrong.
        """
        with self._lock:
            reader = self._look()
            if not self.is_proven:
                probe(self._bucket)
                _proven.add(self._bucket.uri)
            if reader is None:
                reader = self.reader = ShardReader(self._bucket, make_layout(self._bucket, shards).shards)
            return reader

    def forget(self) -> None:
        """Look at the layout anew when the store is next used."""
        with self._lock:
            self.reader = None

    def _look(self) -> ShardReader | None:
        if self.reader is None:
            layout = read_layout(self._bucket)
            if layout is None:
                self._refuse_orphans()
                return None
            self.reader = ShardReader(self._bucket, layout.shards)
        return self.reader

    def _refuse_orphans(self) -> None:
        """Shards without a layout are a store that lost it: read as an empty one, it would be laid out anew."""
        orphan = next((name for name in self._bucket.list("") if shard_named(name) is not None), None)
        if orphan is not None and read_layout(self._bucket) is None:
            message = f"{FORMAT_FILE} is gone, but {orphan} is there. Restore {FORMAT_FILE} from a backup or version."
            raise BackendCorruptError(self._bucket.uri, message)
