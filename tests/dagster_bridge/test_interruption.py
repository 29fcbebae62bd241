"""An interrupt ends a run wherever it comes, and lets it give back what it holds."""

import asyncio
import os
import random
import signal
import threading

import dagster as dg
import pytest
from dagster._core.errors import raise_execution_interrupts
from dagster._utils.interrupts import capture_interrupts

from ingest_assets.runs.interruption import run_interruptibly


async def busy(given_back: list[bool], timer: threading.Timer) -> None:
    """Nothing but wake-ups from other threads, in which an exception of a signal handler is lost."""
    timer.start()
    try:
        while True:
            await asyncio.to_thread(int)
    finally:
        await asyncio.sleep(0)
        given_back.append(True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_interrupt_is_lost(number):
    """Of a hundred interrupts at random moments each ends the work, which has given back what it held."""
    before = signal.getsignal(number)
    for attempt in range(100):
        given_back: list[bool] = []
        timer = threading.Timer(random.Random(attempt).uniform(0.001, 0.01), os.kill, (os.getpid(), number))
        with capture_interrupts(), raise_execution_interrupts():
            with pytest.raises(dg.DagsterExecutionInterruptedError):
                run_interruptibly(asyncio.wait_for(busy(given_back, timer), 20))
        assert given_back == [True]
    assert signal.getsignal(number) is before


def test_an_interrupt_that_comes_too_late_is_told():
    """Work that ends at the moment it is interrupted has ended, and whoever would go on with more hears of it."""

    async def interrupts_itself() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with capture_interrupts(), raise_execution_interrupts(), pytest.raises(dg.DagsterExecutionInterruptedError):
        run_interruptibly(interrupts_itself())


def test_results_and_faults_pass():
    """Without an interrupt it is as if the coroutine had just been run, in any thread."""

    async def fails() -> None:
        raise ZeroDivisionError

    assert run_interruptibly(asyncio.sleep(0, 3)) == 3
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(fails())
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(run_interruptibly(asyncio.sleep(0, 4))))
    thread.start()
    thread.join()
    assert results == [4]
