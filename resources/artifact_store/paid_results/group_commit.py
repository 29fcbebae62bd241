"""Group commit: what waits at the same time, of whatever thread or event loop, is written and synced together."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Change = TypeVar("Change")
Outcome = TypeVar("Outcome")


class GroupCommit(Generic[Change, Outcome]):
    """A queue with one writer: it takes all that waits, commits it, says what became of each, and looks again."""

    def __init__(self, commit: Callable[[Sequence[Change]], Sequence[Outcome | Exception]]) -> None:
        """Nothing is started before something waits.

        Args:
            commit: makes changes durable, and says for each, in order, what became of it: a value, or why it was
                refused. What it raises, all that were committed together are told.
        """
        self._commit = commit
        self._lock = threading.Lock()
        self._waiting: list[tuple[Change, Future[Outcome]]] = []
        self._has_writer = False
        self._thread: ThreadPoolExecutor | None = None

    async def commit(self, change: Change) -> Outcome:
        """Wait until a change is durable; what became of it. A caller that is cancelled does not take it back."""
        return await asyncio.shield(asyncio.wrap_future(self.queue(change)))

    def queue(self, change: Change) -> Future[Outcome]:
        """Queue a change; what will become of it."""
        future: Future[Outcome] = Future()
        with self._lock:
            self._waiting.append((change, future))
            if not self._has_writer:
                self._has_writer = True
                self._thread = self._thread or ThreadPoolExecutor(1, "paid-results")
                self._thread.submit(self._write)
        return future

    def shut(self) -> None:
        """Wait for what is under way, then end the writer. Blocks."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def _write(self) -> None:
        while group := self._take():
            try:
                outcomes = self._commit([change for change, _ in group])
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
                outcomes = [error] * len(group)
            for (_, future), outcome in zip(group, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    def _take(self) -> list[tuple[Change, Future[Outcome]]]:
        """All that waits; the writer leaves when nothing does."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            self._has_writer = bool(taken)
        return taken
