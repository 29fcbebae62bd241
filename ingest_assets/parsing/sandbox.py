"""What a child takes away from itself before it sees a document.

The one place for it: limits of the kernel live here, and whatever is to be forbidden later belongs here.
"""

import ctypes
import os
import resource
import signal
import sys

from .limits import ParseLimits

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4


def enter(limits: ParseLimits, parent: int) -> None:
    """Bind this process to its parent's life and to its limits.

    Args:
        limits: What one document may cost.
        parent: Process id of the parent; when it died before this call, so does this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
