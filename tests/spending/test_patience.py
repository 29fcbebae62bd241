"""Waiting for money that others have reserved: refused is only who what was spent leaves no room for."""

import asyncio
from datetime import timedelta

import pytest

from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.artifact_store.paid_results.usage import Usage
from resources.document_state.patience import Patience
from resources.document_state.spend_book import Ceilings, spent_in
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.records.memory_backend import MemoryBackend
from tests.paid_results.contract import answer, call
from tests.spending.spending import NOW, reservation

CEILINGS = Ceilings(per_day_micro_usd=1_000)
OTHERS = reservation("theirs", 900, job_id="other", worker_id="other")
MINE = reservation("mine", 500, job_id="mine", worker_id="me")


class Desk:
    """A gate, and a batch that may have to wait at it while a sweep finds who is dead."""

    def __init__(self, journal):
        self.journal = journal
        self.ledger = SpendLedger(MemoryBackend())
        self.gate = SpendGate(self.ledger, journal)
        self.living = ["me", "other"]
        self.now = NOW
        self.n_waits = 0
        self._waiting = asyncio.Event()

    def ask(self, seconds=30.0, wanted=MINE):
        """Ask for admission, as a task."""
        patience = Patience(seconds, self._sweep, 0.2, self._waits)
        return asyncio.create_task(self.gate.admit_in_time(wanted, CEILINGS, lambda: self.now, patience))

    async def begun_to_wait(self):
        """Until a batch waits."""
        async with asyncio.timeout(10):
            await self._waiting.wait()

    async def _sweep(self):
        async def living():
            return self.living

        await self.gate.sweep(living, self.now)

    def _waits(self):
        self.n_waits += 1
        self._waiting.set()


@pytest.fixture
async def desk(tmp_path):
    """A gate at which others have reserved most of the day's money."""
    journal = SqliteJournal(tmp_path / "paid.db")
    made = Desk(journal)
    assert await made.gate.admit(OTHERS, CEILINGS, NOW) is None
    await journal.begin("theirs", [call("a", 900)])
    yield made
    await journal.shut()


class TestPatience:
    async def test_admitted_when_others_cost_less_than_they_reserved(self, desk):
        """What they did not need is there for whoever waits."""
        asked = desk.ask()
        await desk.begun_to_wait()
        await desk.journal.record("theirs", call("a", 900), [answer("a")], Usage(1, 1, 500), NOW)
        await desk.gate.settle("theirs")
        assert await asked is None
        assert [each.reservation_id for each in await desk.ledger.open_reservations()] == ["mine"]

    async def test_refused_as_soon_as_what_is_spent_leaves_too_little(self, desk):
        """They cost a little too much: nobody waits longer, and nothing of the refused batch stays."""
        asked = desk.ask()
        await desk.begun_to_wait()
        await desk.journal.record("theirs", call("a", 900), [answer("a")], Usage(1, 1, 501), NOW)
        await desk.gate.settle("theirs")
        refusal = await asked
        assert (refusal.spent_micro_usd, refusal.reserved_micro_usd, refusal.waited_seconds) == (501, 0, 0)
        assert await desk.journal.logs() == []

    @pytest.mark.parametrize(("seconds", "wanted"), [(0.0, MINE), (30.0, reservation("mine", 1_001))])
    async def test_nobody_waits_in_vain(self, desk, seconds, wanted):
        """Where waiting is switched off, or more is asked for than the ceiling is, the answer comes at once."""
        refusal = await desk.ask(seconds, wanted)
        assert (desk.n_waits, refusal.waited_seconds) == (0, 0)

    async def test_patience_has_an_end(self, desk):
        """Others hold on to their money: the refusal says how long they were waited for, and by which setting."""
        refusal = await desk.ask(0.3)
        assert (refusal.waited_seconds, refusal.is_final, desk.n_waits) == (0.3, False, 1)
        assert "spend.wait_seconds" in refusal.message
        assert [log.reservation_id for log in await desk.journal.logs()] == ["theirs"]

    @pytest.mark.parametrize("before", [True, False], ids=["dead before", "dies meanwhile"])
    async def test_what_the_dead_hold_is_settled_by_who_waits(self, desk, before):
        """Nobody else may be there to do it. Their call in flight counts at its worst case, the rest is free."""
        await desk.gate.settle("theirs")
        tomorrow = NOW + timedelta(days=1)
        desk.now = tomorrow
        await desk.gate.admit(reservation("dead", 900, worker_id="dead"), CEILINGS, tomorrow)
        await desk.journal.begin("dead", [call("a", 400)])
        if not before:
            desk.living.append("dead")
        asked = desk.ask()
        await desk.begun_to_wait()
        desk.living = ["me"]
        assert await asked is None
        assert spent_in((await desk.ledger.report()).days["2026-02-01"]) == 400

    async def test_midnight_is_noticed(self, desk):
        """Whoever waits over midnight gets the new day's money, and not yesterday's."""
        asked = desk.ask()
        await desk.begun_to_wait()
        desk.now = NOW + timedelta(days=1)
        assert await asked is None
        assert {each.reservation.reservation_id: each.day for each in (await desk.ledger.report()).open} == {
            "theirs": "2026-01-31",
            "mine": "2026-02-01",
        }

    async def test_a_wait_can_be_cancelled(self, desk):
        """Ctrl-C ends it at once; nothing is reserved, and the log it leaves goes with the sweep."""
        asked = desk.ask()
        await desk.begun_to_wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert [each.reservation_id for each in await desk.ledger.open_reservations()] == ["theirs"]
        desk.living = ["other"]
        await desk._sweep()
        assert [log.reservation_id for log in await desk.journal.logs()] == ["theirs"]

    async def test_many_who_wait_all_get_their_turn(self, desk):
        """Of five that do not fit beside each other, each is admitted when the one before it is settled."""
        await desk.gate.settle("theirs")
        desk.now = NOW + timedelta(days=1)

        async def work(number):
            name = f"r{number}"
            assert await desk.ask(wanted=reservation(name, 600, worker_id="me")) is None
            await desk.journal.begin(name, [call(name, 600)])
            await desk.journal.failed(name, name, Usage(1, 1, 100))
            await desk.gate.settle(name)

        await asyncio.gather(*(work(number) for number in range(5)))
        assert spent_in((await desk.ledger.report()).days["2026-02-01"]) == 500
