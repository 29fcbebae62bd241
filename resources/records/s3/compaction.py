"""A new base for a shard whose head has grown, and the end of bases that nothing needs.

The bases that are there are listed; then the new one is put under a fresh name, then the head that names it; when that
is in place, those that were listed are removed. Wherever this ends, the head names a base that is there, and at worst a
base is left that nothing names. The next compaction of the shard removes it, whoever left it.

No clock is needed to know that nobody is about to name a base that is removed. A head that names a new base asks for
the ETag of the head that was read before the base was put. Whoever had put a listed base had read such a head before
the listing, and once ours is in place, none of those comes back (see `packing`): that PUT is refused, whenever it may
arrive. If ours is refused, that is known of our own base alone.
"""

import contextlib
import secrets

from resources.records.backend import BackendError, BackendUnavailableError
from resources.records.s3.bucket import Bucket, NoBody, Refusal
from resources.records.s3.layout import base_of, is_base_of, shard_prefix
from resources.records.s3.objects import encode_base
from resources.records.s3.packing import TAIL_BYTES
from resources.records.s3.patience import Patience
from resources.records.s3.shard import Shard
from resources.records.s3.shard_cache import Stored


class Compaction:
    """At most one new base, for one change of a shard as it was stored. Blocks."""

    def __init__(self, bucket: Bucket, kind: str, number: int, stored: Stored) -> None:
        self._bucket = bucket
        self._kind = kind
        self._number = number
        self._stored = stored
        self._found: set[str] = set()
        self._own: set[str] = set()

    def compact(self, changed: Shard, patience: Patience) -> Shard:
        """The changed shard on a base of its own, which is there now; or without one, if it has become small.

        Raises:
            TooLargeError: no reader would accept it.
            BackendError: by what went wrong.
        """
        listed = self._bucket.list(shard_prefix(self._kind, self._number))
        self._found = {name for name in listed if is_base_of(self._kind, self._number, name)}
        base, body = encode_base(changed, secrets.token_hex(8))
        alone = changed.alone()
        if len(body) + TAIL_BYTES <= alone.room:
            return alone
        name = base_of(self._kind, self._number, base.id)
        self._own = {name}
        self._put(name, body, patience)
        return changed.on(base)

    def settle(self, after: Stored, *, is_ours: bool) -> None:
        """Remove what nothing needs, now that the shard is stored so. What cannot be removed now is left.

        Args:
            after: the shard as it was written, or read after it was not written for certain.
            is_ours: whether our change is in it.
        """
        is_over = is_ours or after.etag != self._stored.etag  # else our head may yet arrive
        unneeded = (self._found if is_ours else set()) | (self._own if is_over else set())
        for name in sorted(unneeded - {base_of(self._kind, self._number, after.shard.base.id)}):
            with contextlib.suppress(BackendError):
                self._bucket.delete(name)

    def _put(self, name: str, body: bytes, patience: Patience) -> None:
        """Put a base, and be certain that it is there before a head names it.

        The name is nobody else's, so a refusal means that a request of ours whose reply was lost has brought it; that
        is looked at.
        """
        while True:
            try:
                answer = self._bucket.put(name, body, "")
            except BackendUnavailableError as error:
                patience.after_outage(error)
                continue
            if not isinstance(answer, Refusal):
                return
            found = self._bucket.get(name)
            if not isinstance(found, NoBody) and found.body == body:
                return
            patience.after_race()
