"""Which process this is, so that another one on the same machine can tell whether it still lives."""

import os
import signal
from pathlib import Path

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, across reboots, containers and reuse of process ids.

    Attributes:
        boot_id: the kernel's id of this boot; "" where there is none.
        namespace: the process-id namespace, since containers share the kernel but not the ids.
        pid: the process id inside it.
        started: the start time the kernel counts for it, which a reused id does not share.
    """

    boot_id: str
    namespace: str
    pid: int
    started: str


def this_process() -> ProcessIdentity:
    """The identity of the calling process."""
    return process_of(os.getpid())


def process_of(pid: int) -> ProcessIdentity:
    """The identity of a living process of this machine and container."""
    return ProcessIdentity(_boot_id(), _namespace(), pid, _start_of(pid) or "")


def interrupt(process: ProcessIdentity) -> bool:
    """Send SIGINT, as Ctrl-C does; False if the process is not of this machine, or is no more.

    The process is held by a descriptor while it is looked at, so that no other one can have taken its id by then.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if not process.started or process_of(process.pid) != process:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGINT)
    except ProcessLookupError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def is_certainly_dead(process: ProcessIdentity) -> bool:
    """True if the process ran on this machine and is gone; False if it lives or cannot be judged from here."""
    if not process.boot_id or (process.boot_id, process.namespace) != (_boot_id(), _namespace()):
        return False
    return _start_of(process.pid) != process.started


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(_PID_NAMESPACE.readlink())
    except OSError:
        return ""


def _start_of(pid: int) -> str | None:
    """The start time of a living process in clock ticks since boot; None if there is none (a zombie counts as none)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
