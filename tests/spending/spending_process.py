"""A worker that buys answers until the money is gone; spawned, so it must be importable."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from resources.artifact_store.paid_results.call_log import Call
from resources.artifact_store.paid_results.open_journal import open_journal
from resources.artifact_store.paid_results.paid_result import Answer
from resources.artifact_store.paid_results.usage import Usage
from resources.document_state.patience import Patience
from resources.document_state.spend_book import Ceilings, Reservation
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.document_state.workers import LEASE, Worker, WorkerWatch
from resources.records.uri import open_backend
from tests.spending.spending import NOW

JOBS_OF_EACH = 6
CALLS_OF_A_JOB = 2
WORST_OF_A_CALL = 25
WORST_OF_A_JOB = CALLS_OF_A_JOB * WORST_OF_A_CALL
CEILINGS = Ceilings(WORST_OF_A_JOB, 20 * WORST_OF_A_JOB)
# What each call costs where all cost the same, and how many jobs can be paid then: the last one needs its worst case.
FIXED_COST = 22
AFFORDABLE = 22
_WAIT_SECONDS = 100.0
_STEPS_OF_A_JOB = 3 + 3 * CALLS_OF_A_JOB


def bill(provider: Path, call: Call, micro_usd: int) -> None:
    """The provider's own books: what it was asked and bills for, whatever becomes of the asker."""
    with provider.open("ab", buffering=0) as books:
        books.write(f"{call.call_id} {micro_usd}\n".encode())


def billed(provider: Path) -> list[int]:
    """What the provider bills for each call."""
    return [int(line.split()[1]) for line in provider.read_text().splitlines()] if provider.exists() else []


def buy(uri: str, together, artifacts: str, provider: Path, seed: int, *, exact: bool, mortal: bool) -> None:
    """Admit, call, record and settle one-document jobs, as an engine does.

    Args:
        uri: the state.
        together: where all wait for each other.
        artifacts: where the journal is.
        provider: see `bill`.
        seed: of the prices, and of the moment of death.
        exact: each call costs the same, and jobs wait for what others have reserved; else up to its worst case.
        mortal: dies by kill -9 at one of its steps, or, by chance, not.
    """
    chance = random.Random(seed)
    deadly = chance.randrange(_STEPS_OF_A_JOB * JOBS_OF_EACH) if mortal else -1
    steps = iter(range(_STEPS_OF_A_JOB * JOBS_OF_EACH))

    async def go() -> None:
        backend, journal = open_backend(uri, Path("/")), open_journal(artifacts, Path("/"))
        gate = SpendGate(SpendLedger(backend), journal)
        worker, watch = await Worker.register(backend, "run", NOW), WorkerWatch(backend)
        patience = Patience(
            _WAIT_SECONDS, partial(gate.sweep, watch.living_ids, NOW), LEASE.total_seconds(), lambda: None
        )
        together.wait()
        for number in range(JOBS_OF_EACH):
            name = f"{seed}-{number}"
            _live_or_die(steps, deadly)
            wanted = Reservation(name, f"job-{name}", worker.worker_id, "m", WORST_OF_A_JOB)
            if exact:
                refusal = await gate.admit_in_time(wanted, CEILINGS, lambda: NOW, patience)
            else:
                refusal = await gate.admit(wanted, CEILINGS, NOW)
            if refusal is not None:
                continue
            _live_or_die(steps, deadly)
            for sequel in range(CALLS_OF_A_JOB):
                call = Call(f"{name}-{sequel}", "org", "m", WORST_OF_A_CALL)
                cost = FIXED_COST if exact else chance.randrange(WORST_OF_A_CALL + 1)
                await journal.begin(name, [call])
                _live_or_die(steps, deadly)
                bill(provider, call, cost)
                _live_or_die(steps, deadly)
                answers = [Answer(f"key-{call.call_id}", b"answer", (f"doc-{name}",))]
                await journal.record(name, call, answers, Usage(1, 1, cost), NOW)
                _live_or_die(steps, deadly)
            await gate.settle(name)
            _live_or_die(steps, deadly)
        await journal.shut()
        await worker.end()
        await backend.close()

    asyncio.run(go())


def _live_or_die(steps: Iterator[int], deadly: int) -> None:
    if next(steps) == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
