"""One child process as the parent sees it: pipes, what is in flight, and whose fault its death is."""

import contextlib
import fcntl
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from resources.document_state.reasons import Reason

from . import frames
from .accept import is_acceptable
from .frames import PREFIX, Reply
from .limits import Chunking, ParseLimits
from .result import ParseFailure

_logger = logging.getLogger(__name__)
_ROOT = str(Path(__file__).resolve().parents[2])
# -I leaves out everything a caller could have put on the path, so it is handed over by arguments.
_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from ingest_assets.parsing.child import main; main()"
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 16  # what is asked for is taken from the system each time, and most replies have a few KB
_START_SECONDS = 60.0
_AHEAD_DOCUMENTS = 16
_AHEAD_BYTES = 512 * 1024
_STDERR_BYTES = 64 * 1024
_LOOK_SECONDS = 0.005


class Job:
    """One document on its way.

    Attributes:
        deliver: Called once with the outcome, in the feeder's thread.
        heavy: Whether it may take long, so that nothing should wait behind it in a pipe.
        unpack_from: None: it is to be parsed; else the number of the first member that is wanted of it.
        alone: Whether it goes to a fresh child: it was in the hands of one that died and had done others before.
    """

    __slots__ = ("alone", "content", "deliver", "filename", "heavy", "unpack_from")

    def __init__(
        self, filename: str, content: bytes, deliver: Callable[[Reply], None], unpack_from: int | None = None
    ) -> None:
        self.filename = filename.encode("utf-8", "replace").decode()
        self.content = content
        self.deliver = deliver
        self.unpack_from = unpack_from
        self.heavy = content.startswith((b"%PDF", b"PK\x03\x04")) or len(content) > _AHEAD_BYTES
        self.alone = False


class Dead(Exception):  # noqa: N818 - a fact about a child, not an error of the program
    """The child has ended."""


class Lied(Dead):
    """The child has sent what none of ours sends: it is to be killed."""


class Worker:
    """A running child. All methods belong to the feeder's thread.

    That thread starts it too, and lives as long as the pool: the kernel's parent-death signal comes when the
    *thread* that started a process ends.
    """

    def __init__(self, limits: ParseLimits, chunking: Chunking) -> None:
        path = dict.fromkeys([_ROOT, *(str(Path(entry).resolve()) for entry in sys.path)])
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-I", "-c", _BOOT, *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            close_fds=True,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self.requests = self._process.stdin.fileno()
        # A process that is started so begins with its parent's peak, not with its own.
        self._inherited_peak = _own_peak_bytes()
        self._peak = 0
        self.replies = self._process.stdout.fileno()
        self._stderr = self._process.stderr.fileno()
        for descriptor in (self.requests, self.replies):
            _widen(descriptor)
        for descriptor in (self.requests, self.replies, self._stderr):
            os.set_blocking(descriptor, False)
        self.jobs: deque[Job] = deque()
        self.done = 0
        self.ready = False
        self.retiring = False
        self.watched = False  # for room in its pipe
        self._limits = limits
        self._ahead_bytes = 0
        self._received = bytearray()
        self._to_send: deque[memoryview] = deque()
        self._since = time.monotonic()
        setup = frames.Setup(limits, chunking, os.getpid())
        self._to_send.append(memoryview(frames.request_prefix(setup, 0)))

    @property
    def wants_to_send(self) -> bool:
        """Whether bytes wait for room in the pipe."""
        return bool(self._to_send)

    @property
    def deadline(self) -> float | None:
        """When, on the monotonic clock, it is overdue; None while it has nothing to do."""
        if not self.ready:
            return self._since + _START_SECONDS
        return self._since + self._limits.wall_seconds if self.jobs else None

    def takes(self, job: Job) -> bool:
        """Whether this job may be sent now. Light ones are sent ahead, so that the child never waits for us."""
        if self.retiring or (job.alone and (self.done or self.jobs)):
            return False
        if not self.jobs:
            return True
        if job.alone or self.jobs[-1].alone:
            return False
        if job.heavy or self.jobs[-1].heavy:
            # One may wait, so that the child has work while we are told of the last; if that hangs, another takes it.
            return len(self.jobs) == 1 and len(job.content) <= _AHEAD_BYTES
        return len(self.jobs) < _AHEAD_DOCUMENTS and self._ahead_bytes + len(job.content) <= _AHEAD_BYTES

    def give(self, job: Job) -> None:
        """Queue a job's frame."""
        if not self.jobs and self.ready:
            self._since = time.monotonic()
        self.jobs.append(job)
        self._ahead_bytes += len(job.content)
        prefix = frames.request_prefix(frames.Request(job.filename, job.unpack_from), len(job.content))
        self._to_send.append(memoryview(prefix))
        self._to_send.append(memoryview(job.content))

    def send(self) -> None:
        """Write what the pipe takes. A broken pipe is found when reading."""
        try:
            while self._to_send:
                written = os.writev(self.requests, [self._to_send[i] for i in range(min(len(self._to_send), 64))])
                while self._to_send and written >= len(self._to_send[0]):
                    written -= len(self._to_send.popleft())
                if written:
                    self._to_send[0] = self._to_send[0][written:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._to_send.clear()

    def receive(self) -> Iterator[tuple[Job, Reply]]:
        """Read what is there, and give each finished job.

        Raises:
            Dead: The pipe has ended; all whole replies were given before.
            Lied: It holds what is no reply.
        """
        try:
            data = os.read(self.replies, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise Dead
        self._received += data
        while (body := self._next_body()) is not None:
            self._since = time.monotonic()
            if not self.ready:
                self._become_ready(body)
                continue
            if not self.jobs:
                raise Lied
            outcome = _decoded(body, unpacking=self.jobs[0].unpack_from is not None)
            job = self.jobs.popleft()
            self._ahead_bytes -= len(job.content)
            self.done += 1
            yield job, outcome

    def end(self) -> str:
        """Kill it if it runs, reap it, close the pipes; returns what it said last on standard error."""
        if not self._reap(os.WNOHANG):
            self._process.kill()
            self._reap()
        try:
            said = os.read(self._stderr, _STDERR_BYTES).decode("utf-8", "replace")
        except BlockingIOError:
            said = ""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe
            pipe.close()
        return said

    def failure(self, said: str) -> ParseFailure:
        """What to say of the document that was in the hands of this dead child."""
        code = self._process.returncode
        if "memory allocation of" in said or "MemoryError" in said or code == -signal.SIGKILL or self._was_full():
            return ParseFailure(
                Reason.OUT_OF_MEMORY,
                f"The parser process needed more; limits.memory_bytes is {self._limits.memory_bytes:,}.",
            )
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return ParseFailure(Reason.PARSER_CRASHED, f"The parser process ended with {how}.")

    def exited(self, seconds: float = 0.5) -> bool:
        """Wait shortly for it to end by itself, so that its own exit code is known."""
        until = time.monotonic() + seconds
        while not self._reap(os.WNOHANG):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def _reap(self, options: int = 0) -> bool:
        """Collect its exit code and its peak of memory; False if it still runs."""
        if self._process.returncode is None:
            try:
                pid, status, usage = os.wait4(self._process.pid, options)
            except ChildProcessError:  # somebody else in this program has collected it
                self._process.returncode = 0
                return True
            if not pid:
                return False
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._peak = _peak_bytes(usage)
        return True

    def _was_full(self) -> bool:
        """Whether it died of a signal with most of its memory in use: libraries in C++ abort when they get no more."""
        enough = max(self._limits.memory_bytes // 2, self._inherited_peak)
        return self._process.returncode < 0 and self._peak > enough

    def _become_ready(self, body: bytearray) -> None:
        try:
            lost = frames.decode_ready(body).missing
        except ValueError as error:
            raise Lied from error
        self.ready = True
        if lost:
            _tell_what_is_missing(lost)

    def _next_body(self) -> bytearray | None:
        if len(self._received) < PREFIX.size:
            return None
        length, resident_kib = PREFIX.unpack_from(self._received)
        if length > self._limits.reply_bytes:
            raise Lied
        end = PREFIX.size + length
        if len(self._received) < end:
            return None
        if len(self._received) == end:
            body, self._received = self._received, bytearray()
            del body[: PREFIX.size]  # moves nothing: a bytearray begins where it is told to
        else:
            body = self._received[PREFIX.size : end]
            del self._received[:end]
        # One that has been big keeps its heap; what it does next would be refused memory it has a right to.
        self.retiring = self.retiring or resident_kib * 1024 > self._limits.memory_bytes // 4
        return body


@lru_cache(maxsize=1)
def _tell_what_is_missing(lost: tuple[str, ...]) -> None:
    """Once in the life of this program."""
    _logger.warning("This machine cannot take away from parsers: %s. See docs/security.md.", "; ".join(lost))


def _own_peak_bytes() -> int:
    """The most memory this program has had, which is what the peak of its children begins with.

    Not by getrusage, where there is another way: that counts what had this process before, and a child does not.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return _peak_bytes(resource.getrusage(resource.RUSAGE_SELF))
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _peak_bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _widen(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _decoded(body: bytearray, *, unpacking: bool) -> Reply:
    try:
        outcome = frames.decode_reply(body)
    except ValueError as error:
        raise Lied from error
    if not is_acceptable(outcome, unpacking=unpacking):
        raise Lied
    return outcome
