"""A lock between processes and threads on one machine: many readers or one writer, waited for within bounds."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


@contextmanager
def shared_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock beside other readers. See `exclusive_lock`."""
    with _locked(path, fcntl.LOCK_SH, timeout):
        yield


@contextmanager
def exclusive_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock alone.

    The kernel releases it when its holder dies, however it dies. The files stay where they are: removing a lock
    file that another process is about to lock would let two in.

    Args:
        path: the lock's file; `<path>.gate` stands beside it. The folder must exist.
        timeout: seconds to wait at most.

    Raises:
        TimeoutError: the lock was not to be had in time.
        OSError: the file could not be opened, for example because it is a symbolic link.
    """
    with _locked(path, fcntl.LOCK_EX, timeout):
        yield


@contextmanager
def _locked(path: Path, mode: int, timeout: float) -> Iterator[None]:
    """Take the gate, then the lock, then let go of the gate.

    A writer waits holding the gate, so readers that come later wait behind it; without the gate readers that overlap
    keep a writer out for ever.
    """
    deadline = time.monotonic() + timeout
    with ExitStack() as held:
        with ExitStack() as gate:
            _acquire(gate, path.with_name(f"{path.name}.gate"), mode, deadline)
            _acquire(held, path, mode, deadline)
        yield


def _acquire(stack: ExitStack, path: Path, mode: int, deadline: float) -> None:
    """Open and lock `path` until the stack closes; polls, because a blocking flock cannot be given up by a thread."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    stack.callback(os.close, descriptor)
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(path) from None
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)
        else:
            return
