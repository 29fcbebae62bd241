"""The pool: documents in, outcomes out, as fast as the children go and never more in memory than a window."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from resources.document_state.reasons import Reason

from .feeder import Feeder
from .frames import LONGEST_CONTENT, Outcome, Reply
from .limits import Chunking, ParseLimits
from .result import ParsedDocument, ParseFailure, Unpacked
from .worker import Job

K = TypeVar("K")

_WINDOW_DOCUMENTS = 1024
_WINDOW_BYTES = 64 * 2**20


class ParserPool:
    """Parses in `workers` child processes, started when first needed and reused while they behave.

    A child that hangs, crashes or grows too big is killed and replaced, which costs its document and no other.
    Use it as a context manager, or call `close`.
    """

    def __init__(self, workers: int, limits: ParseLimits, chunking: Chunking) -> None:
        if workers < 1:
            raise ValueError(f"A parser pool needs at least 1 worker, not {workers}.")
        self._workers = workers
        self._limits = limits
        self._chunking = chunking
        self._feeder: Feeder | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def parse(self, filename: str, content: bytes) -> Outcome:
        """Parse one document and wait for it."""
        outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._submit(filename, content, outcomes.put)
        return outcomes.get()

    def parse_many(self, items: Iterable[tuple[K, str, bytes]]) -> Iterator[tuple[K, Outcome]]:
        """Parse a stream of (key, filename, content); gives (key, outcome) in the order of completion.

        `items` is iterated in a thread of its own, so that the children stay busy while the caller does something
        else; at most 1,024 documents or 64 MiB are between `items` and the caller. What `items` raises is raised
        here, after the outcomes of what it gave before. Leaving early stops reading.
        """
        window = _Window()
        events: queue.SimpleQueue[_Answer[K] | _End] = queue.SimpleQueue()
        reader = threading.Thread(
            target=self._read, args=(items, window, events), name="parser-pool-reader", daemon=True
        )
        reader.start()
        given = 0
        expected: int | None = None
        error: BaseException | None = None
        try:
            while expected is None or given < expected:
                event = events.get()
                if isinstance(event, _End):
                    expected, error = event
                    continue
                given += 1
                window.leave(event.size)
                yield event.key, event.outcome
        finally:
            window.shut()
        reader.join()
        if error is not None:
            raise error

    def unpack(self, filename: str, content: bytes, first: int) -> Unpacked | ParseFailure:
        """A page of a container's members, beginning with number `first`, and wait for it."""
        replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._hand_over(Job(filename, content, replies.put, first))
        reply = replies.get()
        assert not isinstance(reply, ParsedDocument)  # a reply to another question is refused by its worker
        return reply

    def close(self) -> None:
        """End the children. Documents under way end as `internal_error`, which may be tried again."""
        with self._lock:
            self._closed = True
            feeder, self._feeder = self._feeder, None
        if feeder is not None:
            feeder.stop()
            feeder.join()

    def _submit(self, filename: str, content: bytes, deliver: Callable[[Outcome], None]) -> None:
        self._hand_over(Job(filename, content, lambda reply: deliver(_outcome(reply))))

    def _hand_over(self, job: Job) -> None:
        if len(job.content) > LONGEST_CONTENT:
            job.deliver(ParseFailure(Reason.TOO_LARGE, f"It has {len(job.content):,} bytes, over {LONGEST_CONTENT:,}."))
            return
        with self._lock:
            if self._closed:
                raise RuntimeError("This parser pool is closed. Make a new one.")
            if self._feeder is None:
                self._feeder = Feeder(self._workers, self._limits, self._chunking)
                self._feeder.start()
            feeder = self._feeder
        feeder.submit(job)

    def _read(
        self, items: Iterable[tuple[K, str, bytes]], window: "_Window", events: "queue.SimpleQueue[_Answer[K] | _End]"
    ) -> None:
        submitted = 0
        error: BaseException | None = None
        try:
            for key, filename, content in items:
                if not window.enter(len(content)):
                    break
                self._submit(filename, content, _deliver(events, key, len(content)))
                submitted += 1
        except BaseException as raised:  # noqa: BLE001 - it is raised again in the caller's thread
            error = raised
        events.put(_End(submitted, error))


def _outcome(reply: Reply) -> Outcome:
    assert not isinstance(reply, Unpacked)  # a reply to another question is refused by its worker
    return reply


class _Answer(NamedTuple, Generic[K]):
    """An outcome, its key, and the size of the content it is of."""

    key: K
    outcome: Outcome
    size: int


class _End(NamedTuple):
    """Reading has ended: how many documents were handed over, and what stopped it."""

    submitted: int
    error: BaseException | None


def _deliver(events: "queue.SimpleQueue[_Answer[K] | _End]", key: K, size: int) -> Callable[[Outcome], None]:
    return lambda outcome: events.put(_Answer(key, outcome, size))


class _Window:
    """How much may be between reading and the caller: counts documents and bytes; one too big passes alone."""

    def __init__(self) -> None:
        self._documents = 0
        self._bytes = 0
        self._open = True
        self._changed = threading.Condition()

    def enter(self, size: int) -> bool:
        """Wait for room; False when nobody reads any more."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open or self._has_room(size))
            self._documents += 1
            self._bytes += size
            return self._open

    def leave(self, size: int) -> None:
        """One has reached the caller."""
        with self._changed:
            self._documents -= 1
            self._bytes -= size
            self._changed.notify()

    def shut(self) -> None:
        """Let the reader go."""
        with self._changed:
            self._open = False
            self._changed.notify()

    def _has_room(self, size: int) -> bool:
        if not self._documents:
            return True
        return self._documents < _WINDOW_DOCUMENTS and self._bytes + size <= _WINDOW_BYTES
