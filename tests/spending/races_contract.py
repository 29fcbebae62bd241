"""What many processes keep that race for the same money: subclass `RacesContract`, give it a state and artifacts."""

import multiprocessing
import random
import time
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from resources.artifact_store.paid_results.open_journal import open_journal
from resources.artifact_store.paid_results.paid_result import ResultSelection
from resources.document_state.spend_book import spent_in
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.document_state.workers import WorkerWatch
from resources.records.uri import open_backend
from tests.records.processes_contract import run_together
from tests.spending.spending import NOW
from tests.spending.spending_process import (
    AFFORDABLE,
    CALLS_OF_A_JOB,
    CEILINGS,
    WORST_OF_A_CALL,
    WORST_OF_A_JOB,
    billed,
    buy,
)

SPAWN = multiprocessing.get_context("spawn")


class RacesContract(ABC):
    N_PROCESSES = 16
    SECONDS = 120.0

    @pytest.fixture
    @abstractmethod
    def uri(self, tmp_path) -> str:
        """A state where nothing was written yet; a relative path in it counts from the root."""

    @pytest.fixture
    def artifacts(self, tmp_path) -> str:
        """An artifact store where nothing was written yet."""
        return f"sqlite:///{tmp_path / 'artifacts.db'}"

    @pytest.fixture
    def provider(self, tmp_path) -> Path:
        """The provider's books."""
        return tmp_path / "billed"

    async def test_exactly_the_affordable_jobs_pass(self, uri, artifacts, provider):
        """Of all jobs at once exactly as many are admitted as can be paid: each waits while others may cost less."""
        run_together(
            _buy_exactly, self.N_PROCESSES, uri, artifacts, provider, random.randrange(10**6), seconds=self.SECONDS
        )
        backend = open_backend(uri, Path("/"))
        report = await SpendLedger(backend).report()
        assert len(billed(provider)) == AFFORDABLE * CALLS_OF_A_JOB
        assert sum(spent_in(models) for models in report.days.values()) == sum(billed(provider))
        assert 0 <= CEILINGS.per_day_micro_usd - sum(billed(provider)) < WORST_OF_A_JOB
        assert len(report.jobs) == AFFORDABLE
        assert report.open == []
        await backend.close()

    async def test_kills_spend_nothing_unseen(self, uri, artifacts, provider):
        """Half of the processes die by kill -9, at a step of theirs or at any moment; then comes the sweep.

        The ledger is what the journal says, never less than the provider bills, never above the ceiling.
        """
        seed = random.randrange(10**6)
        self._race_with_deaths(uri, artifacts, provider, seed)
        backend, journal = open_backend(uri, Path("/")), open_journal(artifacts, Path("/"))
        ledger = SpendLedger(backend)
        before = await ledger.report()
        logs = {log.reservation_id: log for log in await journal.logs()}
        settled = sum(spent_in(models) for models in before.days.values())
        owed = sum(logs[each.reservation.reservation_id].micro_usd for each in before.open)
        watch = WorkerWatch(backend)
        await watch.bury()
        for _ in range(2):
            await SpendGate(ledger, journal).sweep(watch.living_ids, NOW)
        report = await ledger.report()
        spent = sum(spent_in(models) for models in report.days.values())
        assert report.open == await journal.logs() == []
        assert spent == settled + owed == sum(spent_in(job.models) for job in report.jobs.values()), seed
        assert sum(billed(provider)) <= spent <= CEILINGS.per_day_micro_usd, seed
        assert max(spent_in(job.models) for job in report.jobs.values()) <= CEILINGS.per_job_micro_usd
        # Each answer that the provider billed is there, but for the call in flight of each death.
        kept = sum(total.n_results for total in await journal.totals(ResultSelection()))
        assert len(billed(provider)) - self.N_PROCESSES // 2 <= kept <= len(billed(provider)), seed
        assumed = sum(models["m"].assumed_micro_usd for models in report.days.values())
        assert assumed <= self.N_PROCESSES // 2 * WORST_OF_A_CALL
        await journal.shut()
        await backend.close()

    def _race_with_deaths(self, uri: str, artifacts: str, provider: Path, seed: int) -> None:
        """Processes of which a quarter die at a step of theirs, and a quarter are killed at any moment."""
        together = SPAWN.Barrier(self.N_PROCESSES)
        starts = [_Start(together) for _ in range(self.N_PROCESSES)]
        processes = []
        for number, start in enumerate(starts):
            arguments = (uri, start, artifacts, provider, seed + number)
            keywords = {"exact": False, "mortal": number % 4 == 0}
            processes.append(SPAWN.Process(target=buy, args=arguments, kwargs=keywords, daemon=True))
        for process in processes:
            process.start()
        chance = random.Random(seed)
        for process, start in list(zip(processes, starts, strict=True))[1::4]:
            assert start.left.wait(self.SECONDS)
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
        for process in processes:
            process.join(self.SECONDS)
        assert {process.exitcode for process in processes} <= {0, -9}


class _Start:
    """A barrier, and whether this process has left it: killed within, it would keep the lock, and all others wait."""

    def __init__(self, together) -> None:
        self._together = together
        self.left = SPAWN.Event()

    def wait(self) -> None:
        self._together.wait()
        self.left.set()


def _buy_exactly(uri: str, together, artifacts: str, provider: Path, first_seed: int) -> None:
    """Buy at a fixed price; the place at the barrier tells processes apart."""
    seed = first_seed + together.wait()
    buy(uri, together, artifacts, provider, seed, exact=True, mortal=False)
