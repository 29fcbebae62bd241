"""What a child takes away from itself before it sees a document.

The one place for it: limits of the process, then what the kernel refuses it. `missing` says what this machine cannot
refuse.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable
from functools import lru_cache

from ingest_assets.parsing.limits import ParseLimits

from . import landlock, seccomp

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38

_NO_CALLS = "network, other programs and other processes (seccomp)"
_NO_FILES = "files that are not its own program's (Landlock)"
_NO_LIFE = "its life beyond this program's (parent-death signal)"


def enter(limits: ParseLimits, parent: int, readable: Iterable[str]) -> tuple[str, ...]:
    """Bind this process to its parent's life, to its limits, and to nothing but the pipes it has.

    Args:
        limits: What one document may cost.
        parent: Process id of the parent; when it died before this call, so does this process.
        readable: Folders whose files may still be read: where modules are imported from when first needed.

    Returns:
        What could not be taken away, for people.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    if sys.platform != "linux":
        return missing()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # both of the following ask for it
    lost = [] if landlock.restrict(libc, readable) else [_NO_FILES]
    if not seccomp.restrict(libc, os.getpid()):
        lost.append(_NO_CALLS)
    return tuple(lost)


@lru_cache(maxsize=1)
def missing() -> tuple[str, ...]:
    """What the kernel of this machine cannot take away from a child; nothing is changed by asking."""
    if sys.platform != "linux":
        return _NO_FILES, _NO_CALLS, _NO_LIFE
    libc = ctypes.CDLL(None, use_errno=True)
    lost = [] if landlock.version(libc) else [_NO_FILES]
    if not seccomp.is_available(libc):
        lost.append(_NO_CALLS)
    return tuple(lost)
