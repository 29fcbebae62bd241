"""Interrupts while an event loop runs: Ctrl-C, or the signal by which Dagster cancels a run.

Dagster's handler raises wherever the main thread happens to be. In the middle of the loop's own bookkeeping the loop
takes that for a fault of a callback, logs it and goes on without it: the interrupt is lost, and with it the wake-up of
whoever waited for that callback, so the run hangs for ever.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import dagster as dg

from ingest_assets.runs.stopping import note_stop

T = TypeVar("T")

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def run_interruptibly(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; an interrupt cancels it where it waits, so that it can give back what it holds.

    Raises:
        DagsterExecutionInterruptedError: it was interrupted, and has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)  # signals are the main thread's
    interrupted = False

    async def heeding() -> T:
        nonlocal interrupted
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt(number: int) -> None:
            nonlocal interrupted
            interrupted = True
            note_stop(number)
            task.cancel()

        for number in _INTERRUPTS:
            loop.add_signal_handler(number, interrupt, number)
        return await work

    former = {number: signal.getsignal(number) for number in _INTERRUPTS}
    try:
        result = asyncio.run(heeding())
    except asyncio.CancelledError:
        if not interrupted:
            raise
        raise dg.DagsterExecutionInterruptedError from None
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if interrupted:
        raise dg.DagsterExecutionInterruptedError
    return result
