"""SIGTERM stops a command as Ctrl-C does, and the exit code says which of the two it was.

Service managers, containers and batch systems stop a process by SIGTERM. By itself it ends Python at once, and what was
claimed would wait for a lease.
"""

import signal
from types import FrameType


class _Stop:
    """Which signal asked this process to stop."""

    by = signal.SIGINT


def heed_sigterm() -> None:
    """Let SIGTERM stop what runs in the main thread, as Ctrl-C does. Dagster puts its own handler there in each run."""
    signal.signal(signal.SIGTERM, _stop)


def note_stop(number: int) -> None:
    """Keep in mind by which signal this process was asked to stop."""
    _Stop.by = signal.Signals(number)


def stopped_by() -> signal.Signals:
    """The signal by which this process was asked to stop."""
    return _Stop.by


def _stop(number: int, _: FrameType | None) -> None:
    note_stop(number)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt  # who was started in the background of a script does not hear Ctrl-C
    signal.raise_signal(signal.SIGINT)  # whoever handles Ctrl-C now, as asyncio does, ends its work in good order
