"""The thread that keeps the children fed, watches their clocks, and replaces the dead."""

import contextlib
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Iterable

from resources.document_state.reasons import Reason

from .limits import Chunking, ParseLimits
from .result import ParseFailure
from .worker import Dead, Job, Lied, Worker

_FAILED_STARTS = 3


class Feeder(threading.Thread):
    """One loop for all children of a pool.

    A document that a child dies on is charged with it only when the child was fresh; otherwise it is tried once
    more, alone in a fresh child, since the harm may have been done by one before it. Documents queued behind it
    are sent again. A timeout is charged at once: its clock starts with the document.
    """

    def __init__(self, workers: int, limits: ParseLimits, chunking: Chunking) -> None:
        super().__init__(name="parser-pool", daemon=True)
        self._most = workers
        self._limits = limits
        self._chunking = chunking
        self._inbox: deque[Job] = deque()
        self._waiting: deque[Job] = deque()
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()
        self._failed_starts = 0
        self._stopping = False
        self._ended = False
        self._lock = threading.Lock()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)

    def submit(self, job: Job) -> None:
        """Hand over a job, from any thread. After the end it is answered at once."""
        with self._lock:
            if not self._ended:
                self._inbox.append(job)
                self._wake()
                return
        job.deliver(_closed())

    def stop(self) -> None:
        """End the thread and its children; jobs under way are answered with `internal_error`."""
        with self._lock:
            if not self._ended:
                self._stopping = True
                self._wake()

    def run(self) -> None:
        """Serve until stopped."""
        try:
            while not self._stopping:
                self._assign()
                self._wait()
        finally:
            self._finish()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b".")

    def _assign(self) -> None:
        while self._inbox:
            self._waiting.append(self._inbox.popleft())
        while self._waiting:
            job = self._waiting[0]
            worker = min((w for w in self._workers if w.takes(job)), key=lambda w: len(w.jobs), default=None)
            if (worker is None or worker.jobs) and len(self._workers) < self._most:
                try:
                    worker = self._start()
                except OSError as error:
                    self._fail_waiting(error.strerror or "the system refused it")
                    break
            if worker is None:
                if self._make_room(job):
                    continue
                break
            worker.give(self._waiting.popleft())
        for worker in self._workers:
            self._pump(worker)

    def _start(self) -> Worker:
        worker = Worker(self._limits, self._chunking)
        self._workers.append(worker)
        self._selector.register(worker.replies, selectors.EVENT_READ, worker)
        return worker

    def _make_room(self, job: Job) -> bool:
        """End an idle child for a job that only a fresh one may have."""
        idle = next((worker for worker in self._workers if job.alone and not worker.jobs), None)
        if idle is None:
            return False
        self._remove(idle)
        return True

    def _remove(self, worker: Worker) -> str:
        self._selector.unregister(worker.replies)
        if worker.watched:
            self._selector.unregister(worker.requests)
        self._workers.remove(worker)
        return worker.end()

    def _pump(self, worker: Worker) -> None:
        worker.send()
        if worker.wants_to_send and not worker.watched:
            self._selector.register(worker.requests, selectors.EVENT_WRITE, worker)
        elif worker.watched and not worker.wants_to_send:
            self._selector.unregister(worker.requests)
        worker.watched = worker.wants_to_send

    def _wait(self) -> None:
        deadlines = [deadline for worker in self._workers if (deadline := worker.deadline) is not None]
        timeout = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        for key, events in self._selector.select(timeout):
            if key.data is None:
                os.read(self._wake_read, 4096)
            elif key.data in self._workers and events & selectors.EVENT_READ:
                self._collect(key.data)
        for worker in list(self._workers):
            deadline = worker.deadline
            if deadline is not None and deadline <= time.monotonic():
                self._overdue(worker)

    def _collect(self, worker: Worker) -> None:
        try:
            for job, outcome in worker.receive():
                self._failed_starts = 0
                if isinstance(outcome, ParseFailure) and outcome.reason is Reason.OUT_OF_MEMORY:
                    worker.retiring = True
                    if worker.done > 1 and not job.alone:
                        self._again([job], alone=True)
                        continue
                job.deliver(outcome)
        except Lied:
            self._bury(worker, ParseFailure(Reason.PARSER_CRASHED, "The parser process sent what no parser sends."))
        except Dead:
            self._bury(worker)
        else:
            if worker.retiring and not worker.jobs:
                self._remove(worker)

    def _overdue(self, worker: Worker) -> None:
        """Its reply may have come while this thread had no turn: look once more before the kill."""
        self._collect(worker)
        deadline = worker.deadline
        if worker not in self._workers or deadline is None or deadline > time.monotonic():
            return
        said = self._remove(worker)
        if not worker.ready:
            self._failed_start(worker, said)
            return
        hung = worker.jobs.popleft()
        self._again(worker.jobs)
        seconds = self._limits.wall_seconds
        hung.deliver(ParseFailure(Reason.TIMED_OUT, f"Parsing took longer; limits.wall_seconds is {seconds:g}."))

    def _bury(self, worker: Worker, verdict: ParseFailure | None = None) -> None:
        if verdict is None:
            worker.exited()
        said = self._remove(worker)
        if not worker.ready:
            self._failed_start(worker, said)
            return
        if not worker.jobs:
            return
        suspect = worker.jobs.popleft()
        self._again(worker.jobs)
        if worker.done and not suspect.alone:
            self._again([suspect], alone=True)
        else:
            suspect.deliver(verdict or worker.failure(said))

    def _failed_start(self, worker: Worker, said: str) -> None:
        self._again(worker.jobs)
        self._failed_starts += 1
        if self._failed_starts >= _FAILED_STARTS:
            lines = said.strip().splitlines()
            why = lines[-1] if lines else "it said nothing"
            self._fail_waiting(why)

    def _fail_waiting(self, why: str) -> None:
        while self._waiting:
            self._waiting.popleft().deliver(
                ParseFailure(Reason.INTERNAL_ERROR, f"The parser process does not start: {why}")
            )

    def _again(self, jobs: Iterable[Job], *, alone: bool = False) -> None:
        jobs = list(jobs)
        for job in jobs:
            job.alone = job.alone or alone
        self._waiting.extendleft(reversed(jobs))

    def _finish(self) -> None:
        with self._lock:
            self._ended = True
        under_way = [*self._inbox, *self._waiting]
        for worker in list(self._workers):
            under_way.extend(worker.jobs)
            self._remove(worker)
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        for job in under_way:
            job.deliver(_closed())


def _closed() -> ParseFailure:
    return ParseFailure(Reason.INTERNAL_ERROR, "The parser pool was closed before this document was parsed.")
