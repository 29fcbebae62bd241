"""Group commit: writes of one shard that wait together, of whatever thread or event loop, go in one PUT.

The first to come starts a leader; it takes all that wait, tries each write on its own condition, sends one conditional
PUT, hands out the results and looks again, until nothing waits.

A PUT whose answer is lost or unclear may have been committed, may have failed, or may be under way and arrive at any
time. None of these does harm:

- Committed: the next reading of the shard has the id of our change. All of the PUT's results hold.
- Not committed: the shard is read and the writes are judged anew. What was refused is refused on what was just read.
- Arriving later: it asks for the ETag it was made for, or for an absent object. If the shard still has that ETag when
  we send the next PUT, one of the two comes first, and the other is refused. Later the ETag is gone for good, since no
  two states of a head are equal (see `packing`) and we never remove the object of one.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from resources.records.backend import BackendError, BackendUnavailableError
from resources.records.record import Stamp, Write
from resources.records.s3.bucket import Bucket, Refusal
from resources.records.s3.compaction import Compaction
from resources.records.s3.layout import object_of
from resources.records.s3.objects import encode_head
from resources.records.s3.packing import TooLargeError
from resources.records.s3.patience import Patience
from resources.records.s3.shard import Shard
from resources.records.s3.shard_cache import Stored
from resources.records.s3.shard_reader import ShardReader

Writes = Sequence[tuple[Write, Stamp]]
Submit = Callable[[Callable[[], None]], object]


class _Waiting:
    """Writes of one call, and who waits for their results."""

    def __init__(self, writes: Writes) -> None:
        self.writes = writes
        self.results: Future[list[bool]] = Future()


class ShardWriter:
    """The way of all writes of this process to one shard."""

    def __init__(self, bucket: Bucket, reader: ShardReader, kind: str, number: int, submit: Submit) -> None:
        """Nothing is done before something is written.

        Args:
            bucket: where the object is.
            reader: reads its shards.
            kind: which kind.
            number: which shard of it.
            submit: runs a function in a thread.
        """
        self._bucket = bucket
        self._reader = reader
        self._kind = kind
        self._number = number
        self._name = object_of(kind, number)
        self._submit = submit
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._has_leader = False

    def write(self, writes: Writes) -> Future[list[bool]]:
        """Queue writes; whether each was written, or why nothing is known."""
        waiting = _Waiting(writes)
        with self._lock:
            self._waiting.append(waiting)
            if self._has_leader:
                return waiting.results
            self._has_leader = True
        self._submit(self._lead)
        return waiting.results

    def _lead(self) -> None:
        while group := self._take():
            try:
                done = iter(self._commit([write for waiting in group for write in waiting.writes]))
                for waiting in group:
                    waiting.results.set_result([next(done) for _ in waiting.writes])
            except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
                for waiting in group:
                    waiting.results.set_exception(error)

    def _take(self) -> list[_Waiting]:
        """All that wait and whose callers still do; the leader leaves when nothing does."""
        with self._lock:
            while self._waiting:
                taken, self._waiting = self._waiting, []
                if group := [waiting for waiting in taken if waiting.results.set_running_or_notify_cancel()]:
                    return group
            self._has_leader = False
            return []

    def _commit(self, writes: Writes) -> list[bool]:
        """Whether each write was written. What is refused is refused on a shard that is known to be the current one.

        Raises:
            BackendUnavailableError: others were always first, or no answer was clear; nothing is known.
            BackendError: by what went wrong.
        """
        try:
            return self._try(writes, Patience(self._bucket.uri, self._name))
        except TooLargeError as error:
            message = f"{self._name}: {error}. Use more shards, or another backend."
            raise BackendError(self._bucket.uri, message) from error

    def _try(self, writes: Writes, patience: Patience) -> list[bool]:
        stored, is_fresh = self._reader.last_seen(self._kind, self._number), False
        while True:
            if stored is None:
                stored, is_fresh = self._reader.read(self._kind, self._number), True
            changed, done = stored.shard.changed(writes)
            if changed is None and is_fresh:
                return done
            head = encode_head(changed) if changed else b""
            # A base is too much to put for a head that may be refused.
            if changed is None or (len(head) > changed.room and not is_fresh):
                stored = None
                continue
            stored, is_ours = self._change(stored, changed, head, patience)
            if is_ours:
                return done
            is_fresh = True

    def _change(self, stored: Stored, changed: Shard, head: bytes, patience: Patience) -> tuple[Stored, bool]:
        """The shard as it is after an attempt at a change, and whether the change is in it."""
        compaction = Compaction(self._bucket, self._kind, self._number, stored)
        if len(head) > changed.room:
            changed = compaction.compact(changed, patience)
            head = encode_head(changed)
        written = self._put(stored, changed, head, patience)
        after = written or self._reader.read(self._kind, self._number)
        is_ours = written is not None or changed.changes[0] in after.shard.changes
        compaction.settle(after, is_ours=is_ours)
        return after, is_ours

    def _put(self, stored: Stored, changed: Shard, head: bytes, patience: Patience) -> Stored | None:
        """What was written for certain; if nothing was, reading tells."""
        while True:
            try:
                answer = self._bucket.put(self._name, head, stored.etag)
            except BackendUnavailableError as error:
                patience.after_outage(error)
                return None
            if isinstance(answer, str):
                written = Stored(answer, changed)
                self._reader.remember(self._kind, self._number, written)
                return written
            patience.after_race()
            if answer is not Refusal.BUSY:
                return None
