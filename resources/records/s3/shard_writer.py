"""Group commit: writes of one shard that wait together, of whatever thread or event loop, go in one PUT.

The first to come starts a leader; it takes all that wait, tries each write on its own condition, sends one conditional
PUT, hands out the results and looks again, until nothing waits.

A PUT whose answer is lost or unclear may have been committed, may have failed, or may be under way and arrive at any
time. None of these does harm:

- Committed: the next reading of the shard has the id of our change. All of the PUT's results hold.
- Not committed: the shard is read and the writes are judged anew. What was refused is refused on what was just read.
- Arriving later: it asks for the ETag it was made for, or for an absent object. If the shard still has that ETag when
  we send the next PUT, one of the two comes first, and the other is refused. Later the ETag is gone for good, since no
  two states of a shard are equal (see `shard`) and we never remove the object of one.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from resources.records.backend import BackendError, BackendUnavailableError
from resources.records.record import Stamp, Write
from resources.records.s3.bucket import Bucket, Refusal
from resources.records.s3.layout import object_of
from resources.records.s3.shard import Shard, TooLargeError
from resources.records.s3.shard_cache import Stored
from resources.records.s3.shard_reader import ShardReader

Writes = Sequence[tuple[Write, Stamp]]
Submit = Callable[[Callable[[], None]], object]

_RACES = 40  # attempts in which others were first
_OUTAGES = 3  # attempts without a clear answer, each of them sent several times by boto3
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 1.0


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
        patience = _Patience(self._bucket.uri, self._name)
        base, is_fresh = self._reader.last_seen(self._kind, self._number), False
        while True:
            if base is None:
                base, is_fresh = self._reader.read(self._kind, self._number), True
            changed, done = base.shard.changed(writes)
            if changed is None:
                if is_fresh:
                    return done
                base = None
                continue
            if self._put(base, changed, patience):
                return done
            base, is_fresh = self._reader.read(self._kind, self._number), True
            if changed.changes[0] in base.shard.changes:
                return done

    def _put(self, base: Stored, changed: Shard, patience: "_Patience") -> bool:
        """Whether the change was written for certain; if not, reading tells."""
        try:
            body = changed.encode()
        except TooLargeError as error:
            raise BackendError(
                self._bucket.uri, f"{self._name}: {error}. Use more shards, or another backend."
            ) from error
        while True:
            try:
                answer = self._bucket.put(self._name, body, base.etag)
            except BackendUnavailableError as error:
                patience.after_outage(error)
                return False
            if isinstance(answer, str):
                self._reader.remember(self._kind, self._number, Stored(answer, changed))
                return True
            patience.after_race()
            if answer is not Refusal.BUSY:
                return False


class _Patience:
    """How often a change is tried, and the growing pauses between, of random length so that rivals part."""

    def __init__(self, uri: str, name: str) -> None:
        self._uri = uri
        self._name = name
        self._races = 0
        self._outages = 0

    def after_race(self) -> None:
        """Somebody else was first."""
        self._races += 1
        if self._races == _RACES:
            raise BackendUnavailableError(
                self._uri, f"{self._name}: others were first {_RACES} times. Try again later."
            )
        self._pause(self._races)

    def after_outage(self, error: BackendUnavailableError) -> None:
        """It is not clear whether the change was written."""
        self._outages += 1
        if self._outages == _OUTAGES:
            raise error
        self._pause(self._outages)

    @staticmethod
    def _pause(times: int) -> None:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**times)
        time.sleep(random.uniform(0, longest))  # noqa: S311 - no secret
