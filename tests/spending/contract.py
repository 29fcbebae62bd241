"""What the spend ledger keeps on every backend: subclass `SpendLedgerContract`, give it a backend."""

import asyncio
from abc import ABC, abstractmethod
from datetime import timedelta

import pytest

from resources.document_state import spend_ledger
from resources.document_state.spend_book import Ceilings, Refusal, SpendTotals, spent_in
from resources.document_state.spend_ledger import DAY_KIND, JOB_KIND, SpendLedger
from resources.records.backend import BackendUnavailableError, RecordBackend
from tests.spending.spending import DAY, NOW, reservation, spent

DOLLAR = 1_000_000
PER_DAY = Ceilings(per_day_micro_usd=10 * DOLLAR)


class SpendLedgerContract(ABC):
    @pytest.fixture
    @abstractmethod
    def backend(self, tmp_path) -> RecordBackend:
        """A backend in which nothing was written yet."""

    @abstractmethod
    def losing_replies(self, backend: RecordBackend, *, raises: bool) -> RecordBackend:
        """The same records through a backend that commits each write and then says that none was written, or raises."""

    @pytest.fixture
    def ledger(self, backend):
        """A ledger in which nothing was written yet."""
        return SpendLedger(backend)

    async def test_empty(self, ledger):
        """A ledger that nobody used says so, and settling what is not there is nothing."""
        await ledger.settle("r", spent(5))
        await ledger.settle_in_full("r")
        assert await ledger.open_reservations() == []
        assert await ledger.left("j", PER_DAY, NOW) == 10 * DOLLAR
        assert await ledger.left("j", Ceilings(), NOW) is None
        report = await ledger.report()
        assert (report.days, report.jobs, report.open) == ({}, {}, [])

    async def test_reserve_and_settle(self, ledger):
        """What is reserved is held back until what was spent takes its place."""
        wanted = reservation("r1", 6 * DOLLAR)
        assert await ledger.reserve(wanted, PER_DAY, NOW) is None
        assert await ledger.open_reservations() == [wanted]
        assert await ledger.left("j", PER_DAY, NOW) == 4 * DOLLAR
        await ledger.settle("r1", spent(2 * DOLLAR))
        assert await ledger.open_reservations() == []
        assert await ledger.left("j", PER_DAY, NOW) == 8 * DOLLAR

    async def test_over_the_ceiling_is_refused_with_what_is_left(self, ledger):
        """A refusal says estimate, ceiling, what is spent, reserved and left, and holds nothing."""
        await ledger.reserve(reservation("r1", 3 * DOLLAR), PER_DAY, NOW)
        await ledger.settle("r1", spent(1 * DOLLAR))
        await ledger.reserve(reservation("r2", 4 * DOLLAR), PER_DAY, NOW)
        refusal = await ledger.reserve(reservation("r3", 6 * DOLLAR), PER_DAY, NOW)
        assert refusal == Refusal("spend.per_day_usd", 6 * DOLLAR, 10 * DOLLAR, 1 * DOLLAR, 4 * DOLLAR)
        assert refusal.left_micro_usd == 5 * DOLLAR
        assert [each.reservation_id for each in await ledger.open_reservations()] == ["r2"]
        assert await ledger.reserve(reservation("r3", 5 * DOLLAR), PER_DAY, NOW) is None

    async def test_job_and_day_are_one_check(self, ledger):
        """A job has its own ceiling, which counts what it spent on any day."""
        both = Ceilings(per_job_micro_usd=3 * DOLLAR, per_day_micro_usd=10 * DOLLAR)
        await ledger.reserve(reservation("r1", 2 * DOLLAR, job_id="one"), both, NOW)
        await ledger.settle("r1", spent(2 * DOLLAR))
        tomorrow = NOW + timedelta(days=1)
        refusal = await ledger.reserve(reservation("r2", 2 * DOLLAR, job_id="one"), both, tomorrow)
        assert (refusal.ceiling, refusal.spent_micro_usd) == ("spend.per_job_usd", 2 * DOLLAR)
        assert await ledger.reserve(reservation("r2", 2 * DOLLAR, job_id="two"), both, tomorrow) is None
        assert await ledger.left("one", both, tomorrow) == 1 * DOLLAR

    async def test_everything_counts_once(self, ledger):
        """Reserving, settling and settling otherwise again change nothing."""
        for _ in range(3):
            assert await ledger.reserve(reservation("r1", 6 * DOLLAR), PER_DAY, NOW) is None
        assert await ledger.left("j", PER_DAY, NOW) == 4 * DOLLAR
        for _ in range(3):
            await ledger.settle("r1", spent(1 * DOLLAR))
        await ledger.settle("r1", spent(5 * DOLLAR))
        await ledger.settle_in_full("r1")
        assert await ledger.left("j", PER_DAY, NOW) == 9 * DOLLAR

    async def test_what_nobody_knows_is_settled_in_full(self, ledger):
        """If the journal has lost a reservation's calls, all of it counts as spent, and is told as assumed."""
        await ledger.reserve(reservation("r1", 6 * DOLLAR), PER_DAY, NOW)
        await ledger.settle_in_full("r1")
        report = await ledger.report()
        assert report.days[DAY]["m"] == SpendTotals(
            micro_usd=6 * DOLLAR, assumed_micro_usd=6 * DOLLAR, estimated_micro_usd=6 * DOLLAR
        )

    @pytest.mark.parametrize("raises", [False, True], ids=["said to be refused", "raises"])
    async def test_lost_replies_count_once(self, ledger, backend, raises):
        """Whichever write's reply is lost, repeating it reserves and settles once, and moves days and jobs out once."""
        losing = SpendLedger(self.losing_replies(backend, raises=raises))
        for number in range(spend_ledger.IDLE_JOBS_KEPT + 1):
            day = NOW + timedelta(days=number % 2)
            wanted = reservation(f"r{number}", 6 * DOLLAR, job_id=f"j{number}")
            assert await until_known(lambda wanted=wanted, day=day: losing.reserve(wanted, Ceilings(), day)) is None
            await until_known(lambda wanted=wanted: losing.settle(wanted.reservation_id, spent(2 * DOLLAR)))
        report = await ledger.report()
        assert sum(spent_in(models) for models in report.days.values()) == 2 * DOLLAR * len(report.jobs)
        assert {spent_in(job.models) for job in report.jobs.values()} == {2 * DOLLAR}
        assert len(report.jobs) == spend_ledger.IDLE_JOBS_KEPT + 1
        assert report.open == []

    async def test_finished_days_and_idle_jobs_move_out(self, ledger, backend, monkeypatch):
        """The book stays small, and the report says the same before and after."""
        monkeypatch.setattr(spend_ledger, "IDLE_JOBS_KEPT", 12)
        for number in range(spend_ledger.IDLE_JOBS_KEPT):
            moment = NOW + timedelta(days=number % 3)
            await ledger.reserve(reservation(f"r{number}", 5, job_id=f"j{number}"), Ceilings(), moment)
            before = await ledger.report()
            await ledger.settle(f"r{number}", spent(3))
        book, _ = await ledger._book()
        assert (set(book.days), book.jobs, book.open) == ({"2026-02-02"}, {}, {})
        report = await ledger.report()
        assert sum(spent_in(models) for models in report.days.values()) == 3 * spend_ledger.IDLE_JOBS_KEPT
        assert sum(spent_in(job.models) for job in report.jobs.values()) == 3 * spend_ledger.IDLE_JOBS_KEPT
        assert sum(spent_in(models) for models in before.days.values()) == 3 * (spend_ledger.IDLE_JOBS_KEPT - 1)
        assert [record.key async for record in backend.list_records(DAY_KIND)] == sorted(
            set(report.days) - set(book.days)
        )
        assert {record.key async for record in backend.list_records(JOB_KIND)} == set(report.jobs)

    async def test_job_that_moved_out_comes_back_with_what_it_spent(self, ledger, monkeypatch):
        """A job's ceiling holds however long it slept; its totals grow, whoever moves them out."""
        monkeypatch.setattr(spend_ledger, "IDLE_JOBS_KEPT", 1)
        ceilings = Ceilings(per_job_micro_usd=10)
        for number in range(3):
            assert await ledger.reserve(reservation(f"r{number}", 4), ceilings, NOW) is None
            await ledger.settle(f"r{number}", spent(3))
            assert (await ledger._book())[0].jobs == {}
        assert await ledger.left("j", ceilings, NOW) == 1
        refusal = await ledger.reserve(reservation("r9", 4), ceilings, NOW)
        assert refusal.spent_micro_usd == 9
        assert spent_in((await ledger.report()).jobs["j"].models) == 9

    async def test_slow_mover_takes_nothing_back(self, ledger, backend, monkeypatch):
        """Who moves out a job that has meanwhile spent more, by an old book, neither loses nor doubles anything."""
        await ledger.reserve(reservation("r0", 4), Ceilings(), NOW)
        await ledger.settle("r0", spent(3))
        old, _ = await ledger._book()
        monkeypatch.setattr(spend_ledger, "IDLE_JOBS_KEPT", 1)
        await ledger.reserve(reservation("r1", 4), Ceilings(), NOW)
        await ledger.settle("r1", spent(2))
        assert await ledger._keep_jobs(dict(old.jobs)) == old.jobs
        assert spent_in((await ledger.report()).jobs["j"].models) == 5

    async def test_a_clock_that_is_behind_opens_no_day_again(self, ledger):
        """The day never goes back, so a machine with yesterday's date gets nothing of yesterday's ceiling."""
        await ledger.reserve(reservation("r1", 10 * DOLLAR), PER_DAY, NOW)
        refusal = await ledger.reserve(reservation("r2", 1), PER_DAY, NOW - timedelta(hours=30))
        assert refusal.ceiling == "spend.per_day_usd"

    async def test_a_new_day_has_its_own_ceiling(self, ledger):
        """What was reserved yesterday counts for yesterday, whenever it is settled."""
        await ledger.reserve(reservation("r1", 10 * DOLLAR), PER_DAY, NOW)
        tomorrow = NOW + timedelta(days=1)
        assert await ledger.reserve(reservation("r2", 10 * DOLLAR), PER_DAY, tomorrow) is None
        await ledger.settle("r1", spent(9 * DOLLAR))
        assert {day: spent_in(models) for day, models in (await ledger.report()).days.items()} == {DAY: 9 * DOLLAR}
        await ledger.settle("r2", spent(1 * DOLLAR))
        assert await ledger.left("j", PER_DAY, tomorrow) == 9 * DOLLAR

    async def test_report_is_of_the_days_asked_for(self, ledger):
        """Days before, and jobs that spent nothing since, are left out."""
        for number in range(3):
            moment = NOW + timedelta(days=number)
            await ledger.reserve(reservation(f"r{number}", 5, job_id=f"j{number}"), Ceilings(), moment)
            await ledger.settle(f"r{number}", spent(number))
        report = await ledger.report("2026-02-01")
        assert list(report.days) == ["2026-02-01", "2026-02-02"]
        assert list(report.jobs) == ["j1", "j2"]

    async def test_tasks_at_once_share_the_ceiling(self, ledger):
        """However many reserve in the same moment, no more is held than allowed, and no less than fits."""
        outcomes = await asyncio.gather(
            *(ledger.reserve(reservation(f"r{number}", 3 * DOLLAR), PER_DAY, NOW) for number in range(8))
        )
        assert outcomes.count(None) == len(await ledger.open_reservations()) == 3


async def until_known(attempt):
    """What an engine does when nothing is known about a write: it tries again."""
    while True:
        try:
            return await attempt()
        except BackendUnavailableError:
            continue
