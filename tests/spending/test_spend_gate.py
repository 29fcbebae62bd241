"""The gate: journal and ledger in one order, so that whoever dies wherever, what was spent is in the ledger once."""

import asyncio

import pytest

from resources.artifact_store.paid_results.call_log import CallLog, ReservationClosedError
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.artifact_store.paid_results.usage import Usage
from resources.document_state.spend_book import Ceilings, SpendTotals
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.records.memory_backend import MemoryBackend
from tests.paid_results.contract import answer, call
from tests.spending.spending import DAY, NOW, reservation

CEILINGS = Ceilings(per_day_micro_usd=1_000)


async def nobody():
    """No worker lives."""
    return []


async def everybody():
    """The worker lives."""
    return ["w"]


@pytest.fixture
async def journal(tmp_path):
    """A journal in a new file."""
    opened = SqliteJournal(tmp_path / "paid.db")
    yield opened
    await opened.shut()


@pytest.fixture
def ledger():
    """A ledger in memory."""
    return SpendLedger(MemoryBackend())


@pytest.fixture
def gate(ledger, journal):
    """The gate between them."""
    return SpendGate(ledger, journal)


async def totals(ledger) -> SpendTotals:
    """What the ledger says was spent on the day."""
    return (await ledger.report()).days.get(DAY, {}).get("m", SpendTotals())


class TestWorker:
    async def test_batch_that_ends_well(self, gate, ledger, journal):
        """A batch is settled with exactly what its calls cost, and leaves no log."""
        assert await gate.admit(reservation("r1", 500), CEILINGS, NOW) is None
        await journal.begin("r1", [call("a", 100), call("b", 100)])
        await journal.record("r1", call("a", 100), [answer("a")], Usage(10, 5, 60), NOW)
        await journal.record("r1", call("b", 100), [answer("b")], Usage(20, 6, 70), NOW)
        for _ in range(2):
            await gate.settle("r1")
        assert await totals(ledger) == SpendTotals(2, 30, 11, 130, 0, 500)
        assert await journal.logs() == []

    async def test_refused_batch_leaves_nothing(self, gate, ledger, journal):
        """Over the ceiling nothing is held, no log stays, and no call can begin."""
        refusal = await gate.admit(reservation("r1", 1_001), CEILINGS, NOW)
        assert refusal.left_micro_usd == 1_000
        assert await ledger.open_reservations() == await journal.logs() == []
        with pytest.raises(ReservationClosedError):
            await journal.begin("r1", [call()])

    async def test_batch_without_a_call_is_released(self, gate, ledger):
        """If everything was in the journal already, nothing was spent and nothing is estimated."""
        await gate.admit(reservation("r1", 500), CEILINGS, NOW)
        await gate.settle("r1")
        assert await totals(ledger) == SpendTotals()
        assert await ledger.left("j", CEILINGS, NOW) == 1_000

    async def test_call_whose_bill_is_unknown_counts_at_its_worst(self, gate, ledger, journal):
        """A reply that was lost may have been billed: its worst case is spent, and told as assumed.

        A call that was refused was not billed and is no call in the ledger.
        """
        await gate.admit(reservation("r1", 500), CEILINGS, NOW)
        await journal.begin("r1", [call("lost", 100), call("refused", 100)])
        await journal.failed("r1", "refused", Usage())
        await gate.settle("r1")
        assert await totals(ledger) == SpendTotals(1, 0, 0, 100, 100, 500)


class TestSweep:
    async def test_dead_worker_is_settled_with_its_calls_in_flight(self, gate, ledger, journal):
        """What was journaled counts as it cost, what was begun at its worst, the rest of the reservation is free."""
        await gate.admit(reservation("r1", 900), CEILINGS, NOW)
        await journal.begin("r1", [call("a", 100), call("b", 200)])
        await journal.record("r1", call("a", 100), [answer("a")], Usage(10, 5, 60), NOW)
        assert await gate.sweep(everybody, NOW) == []
        assert await gate.sweep(nobody, NOW) == ["r1"]
        assert await gate.sweep(nobody, NOW) == []
        assert await totals(ledger) == SpendTotals(2, 10, 5, 260, 200, 900)
        assert await journal.logs() == []

    @pytest.mark.parametrize("step", ["open_log", "reserve", "seal", "settled"])
    async def test_death_between_any_two_writes(self, gate, ledger, journal, step):
        """Whichever write was the last, the sweep leaves no log and no reservation, and the payment counts once."""
        wanted = reservation("r1", 500)
        cost = 0
        if step == "open_log":
            await _die_in(gate.admit(wanted, CEILINGS, NOW), ledger, "reserve")
        else:
            await gate.admit(wanted, CEILINGS, NOW)
        if step in {"seal", "settled"}:
            await journal.begin("r1", [call("a", 100)])
            await journal.record("r1", call("a", 100), [answer("a")], Usage(1, 1, 60), NOW)
            cost = 60
            died_in = (ledger, "settle") if step == "seal" else (journal, "close")
            await _die_in(gate.settle("r1"), *died_in)
        await gate.sweep(nobody, NOW)
        assert (await totals(ledger)).micro_usd == cost
        assert await ledger.open_reservations() == await journal.logs() == []

    async def test_worker_that_was_taken_for_dead_spends_nothing_more(self, gate, ledger, journal):
        """It wakes after the sweep: its call is refused, its late answer is kept, and its own settlement is nothing."""
        await gate.admit(reservation("r1", 500), CEILINGS, NOW)
        await journal.begin("r1", [call("a", 100)])
        await gate.sweep(nobody, NOW)
        with pytest.raises(ReservationClosedError):
            await journal.begin("r1", [call("b", 100)])
        await journal.record("r1", call("a", 100), [answer("a")], Usage(1, 1, 60), NOW)
        await gate.settle("r1")
        assert (await totals(ledger)).micro_usd == 100
        assert len(await journal.find([answer("a").key])) == 1

    async def test_worker_that_slept_before_it_reserved_spends_nothing(self, gate, ledger, journal):
        """Its log went with the sweep, so its reservation, made when it wakes, is money without a call."""
        await _die_in(gate.admit(reservation("r1", 500), CEILINGS, NOW), ledger, "reserve")
        await gate.sweep(nobody, NOW)
        await ledger.reserve(reservation("r1", 500), CEILINGS, NOW)
        with pytest.raises(ReservationClosedError):
            await journal.begin("r1", [call("a", 100)])
        await gate.sweep(nobody, NOW)
        assert await ledger.open_reservations() == []

    async def test_worker_that_registers_during_the_sweep_is_spared(self, gate, ledger, journal):
        """The living are asked last, so what they hold was either not seen or is known to be theirs."""

        async def living():
            await gate.admit(reservation("r1", 500), CEILINGS, NOW)
            return ["w"]

        assert await gate.sweep(living, NOW) == []
        await journal.begin("r1", [call("a", 100)])

    async def test_calls_of_a_reservation_that_the_ledger_lost_are_settled(self, gate, journal):
        """A power cut, or an older copy in its place: what was paid and may have been counts, once, for its job."""
        await gate.admit(reservation("r1", 500), CEILINGS, NOW)
        await journal.begin("r1", [call("a", 100), call("b", 200)])
        await journal.record("r1", call("a", 100), [answer("a")], Usage(10, 5, 60), NOW)
        emptied = SpendLedger(MemoryBackend())
        gate = SpendGate(emptied, journal)
        assert await gate.sweep(everybody, NOW) == []
        await asyncio.gather(*(gate.sweep(nobody, NOW) for _ in range(3)))
        assert await totals(emptied) == SpendTotals(2, 10, 5, 260, 200, 500)
        assert list((await emptied.report()).jobs) == ["j"]
        assert await emptied.open_reservations() == await journal.logs() == []

    @pytest.mark.parametrize("step", ["give_back", "seal", "settle", "close"])
    async def test_death_while_a_lost_reservation_is_settled(self, journal, step):
        """Wherever that sweep dies, the next one ends it, and every call counts once."""
        gate = SpendGate(SpendLedger(MemoryBackend()), journal)
        await gate.admit(reservation("r1", 500), CEILINGS, NOW)
        await journal.begin("r1", [call("a", 100)])
        emptied = SpendLedger(MemoryBackend())
        gate = SpendGate(emptied, journal)
        await _die_in(gate.sweep(nobody, NOW), journal if step in {"seal", "close"} else emptied, step)
        await gate.sweep(nobody, NOW)
        assert (await totals(emptied)).micro_usd == 100
        assert await emptied.open_reservations() == await journal.logs() == []

    async def test_slow_sweep_gives_nothing_back_twice(self, gate, ledger, journal, monkeypatch):
        """One that saw a lost reservation's log before another sweep settled it changes nothing any more."""
        await journal.open_log(CallLog("r1", "w", 500))
        await journal.begin("r1", [call("a", 100)])
        seen = await journal.logs()
        await gate.sweep(nobody, NOW)

        async def as_it_was():
            return seen

        monkeypatch.setattr(journal, "logs", as_it_was)
        await gate.sweep(nobody, NOW)
        assert (await totals(ledger)).micro_usd == 100
        assert await ledger.open_reservations() == []

    async def test_batch_that_is_settled_during_the_sweep_counts_once(self, gate, ledger, journal, monkeypatch):
        """Its log was read while it was open, its reservation when it was settled: that is no loss."""
        await gate.admit(reservation("r1", 500), CEILINGS, NOW)
        await journal.begin("r1", [call("a", 100)])
        read = ledger.open_reservations

        async def settled_first():
            await gate.settle("r1")
            return await read()

        monkeypatch.setattr(ledger, "open_reservations", settled_first)
        assert await gate.sweep(nobody, NOW) == []
        assert (await totals(ledger)).micro_usd == 100

    async def test_lost_journal_counts_as_all_spent(self, gate, ledger, journal):
        """If the journal is gone, a reservation is never just released."""
        await ledger.reserve(reservation("r1", 500), CEILINGS, NOW)
        await gate.sweep(nobody, NOW)
        assert (await totals(ledger)).assumed_micro_usd == 500


class _DiedError(Exception):
    """The process is no more."""


async def _die_in(attempt, where, method: str) -> None:
    """Let an attempt end just before a step of its."""
    step = getattr(where, method)

    async def die(*_args, **_kwargs):
        raise _DiedError

    setattr(where, method, die)
    with pytest.raises(_DiedError):
        await attempt
    setattr(where, method, step)
