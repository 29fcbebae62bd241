"""What every journal of paid results keeps: subclass `JournalContract`, give it a journal."""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta

import pytest

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results.call_log import (
    Call,
    CallLog,
    ReservationClosedError,
    ReservationExceededError,
)
from resources.artifact_store.paid_results.paid_result import Answer, KeptTotal, ResultSelection
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.usage import Usage

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LIMIT = 1_000
USAGE = Usage(30, 9, 60)
HOSTILE = b"'; DROP TABLE results; -- \x00\xff\n" * 3


def key(name: object) -> str:
    """A key as the hash of an input would be."""
    return hashlib.sha256(str(name).encode()).hexdigest()


def call(call_id: str = "c1", worst: int = 100, org_id: str = "org", model: str = "m") -> Call:
    """A call about to be sent."""
    return Call(call_id, org_id, model, worst)


def answer(name: object, *document_ids: str, body: bytes = b"answer") -> Answer:
    """An answer for documents."""
    return Answer(key(name), body, document_ids or ("doc",))


async def opened(journal: PaidResultJournal, reservation_id: str = "r1", limit: int = LIMIT) -> str:
    """A reservation's log, open."""
    await journal.open_log(CallLog(reservation_id, "worker", limit))
    return reservation_id


async def bought(journal, *answers: Answer, call_id="c1", usage=USAGE, now=NOW, **of_call) -> None:
    """A call in a log of its own that is sent, answered and recorded; its reservation is not settled."""
    reservation_id = await opened(journal, f"r-{call_id}")
    sent = call(call_id, **of_call)
    await journal.begin(reservation_id, [sent])
    await journal.record(reservation_id, sent, answers, usage, now)


async def settle(journal, *reservation_ids: str) -> None:
    """Seal and close logs."""
    for reservation_id in reservation_ids:
        await journal.seal(reservation_id)
        await journal.close(reservation_id)


class JournalContract(ABC):
    @pytest.fixture
    @abstractmethod
    def journal(self) -> PaidResultJournal:
        """A journal in which nothing was written yet."""

    @abstractmethod
    def reopened(self, journal: PaidResultJournal) -> PaidResultJournal:
        """The same journal, as another process sees it."""

    @abstractmethod
    async def damage(self, journal: PaidResultJournal, key: str) -> None:
        """Spoil a result around the journal."""

    @abstractmethod
    async def damage_log(self, journal: PaidResultJournal, reservation_id: str) -> None:
        """Spoil a log around the journal."""

    async def test_empty(self, journal):
        """Nothing is found in an empty journal, and what is not there can be sealed, closed and forgotten."""
        assert await journal.find([]) == {}
        assert await journal.find([key(1)]) == {}
        assert await journal.logs() == []
        assert await journal.seal("r") is None
        await journal.close("r")
        assert await journal.forget("doc") == 0
        assert await journal.totals(ResultSelection()) == []
        assert await journal.prune(ResultSelection()) == []

    async def test_recorded_answer_is_found(self, journal):
        """An answer is there for another process as soon as it was recorded, whole, with its share of the payment."""
        await bought(journal, answer("a", body=HOSTILE), answer("b"), usage=Usage(31, 9, 61))
        found = await self.reopened(journal).find([key("a"), key("b"), key("c")])
        assert set(found) == {key("a"), key("b")}
        a = found[key("a")]
        assert (a.org_id, a.model, a.reservation_id, a.at, a.body) == ("org", "m", "r-c1", NOW, HOSTILE)
        assert a.usage.plus(found[key("b")].usage) == Usage(31, 9, 61)

    async def test_log_says_what_was_begun_and_paid(self, journal):
        """A log knows each call: what it cost, or that nobody knows and what it costs at most."""
        reservation_id = await opened(journal)
        calls = [call(f"c{i}", worst=100 + i) for i in range(4)]
        await journal.begin(reservation_id, calls)
        await journal.record(reservation_id, calls[0], [answer("a")], Usage(1, 2, 30), NOW)
        await journal.failed(reservation_id, "c1", Usage())
        await journal.failed(reservation_id, "c2", Usage(5, 0, 7))
        log = await self.reopened(journal).seal(reservation_id)
        assert {call_id: each.usage for call_id, each in log.calls.items()} == {
            "c0": Usage(1, 2, 30), "c1": Usage(), "c2": Usage(5, 0, 7), "c3": None,
        }  # fmt: skip
        assert log.micro_usd == 30 + 0 + 7 + 103
        assert (log.worker_id, log.limit_micro_usd, log.sealed) == ("worker", LIMIT, True)

    async def test_everything_may_be_repeated(self, journal):
        """A caller that lost a reply repeats the call, and it counts once."""
        sent = call()
        for _ in range(2):
            await opened(journal)
        for _ in range(2):
            await journal.begin("r1", [sent])
        for _ in range(2):
            await journal.record("r1", sent, [answer("a")], Usage(1, 1, 10), NOW)
        await journal.failed("r1", sent.call_id, Usage())
        first = await journal.seal("r1")
        assert await journal.seal("r1") == first
        assert first.micro_usd == 10
        for _ in range(2):
            await journal.close("r1")

    async def test_nothing_begins_in_a_sealed_log(self, journal):
        """A worker that was taken for dead is refused its next call, before and after its log is gone."""
        await opened(journal)
        await journal.begin("r1", [call("before")])
        await self.reopened(journal).seal("r1")
        with pytest.raises(ReservationClosedError):
            await journal.begin("r1", [call("after")])
        assert set((await journal.seal("r1")).calls) == {"before"}
        await self.reopened(journal).close("r1")
        with pytest.raises(ReservationClosedError):
            await journal.begin("r1", [call("after")])
        assert await journal.logs() == []

    async def test_answer_that_comes_after_the_seal_is_kept(self, journal):
        """What was paid for is kept, though the call stays settled at its worst case."""
        sent = call()
        await opened(journal)
        await journal.begin("r1", [sent])
        sealed = await journal.seal("r1")
        await journal.record("r1", sent, [answer("a")], Usage(1, 1, 10), NOW)
        assert await journal.seal("r1") == sealed
        await journal.close("r1")
        await journal.record("r1", sent, [answer("b")], Usage(1, 1, 10), NOW)
        assert set(await journal.find([key("a"), key("b")])) == {key("a"), key("b")}
        assert await journal.logs() == []

    async def test_open_log_cannot_be_closed(self, journal):
        """A log goes only after nothing can be added to it."""
        await opened(journal)
        with pytest.raises(ArtifactStoreError, match="not sealed"):
            await journal.close("r1")
        assert [log.reservation_id for log in await journal.logs()] == ["r1"]

    async def test_calls_stay_within_what_is_reserved(self, journal):
        """Calls that may cost more than the rest are refused as a whole; what a call left over may be used."""
        await opened(journal)
        await journal.begin("r1", [call("a", 600)])
        with pytest.raises(ReservationExceededError):
            await journal.begin("r1", [call("b", 100), call("c", 301)])
        await journal.failed("r1", "a", Usage(1, 1, 500))
        await journal.begin("r1", [call("b", 100), call("c", 400)])
        assert (await journal.seal("r1")).micro_usd == LIMIT

    async def test_refusal_of_one_is_not_anothers(self, journal):
        """Of changes that are written together, each has its own outcome."""
        await opened(journal, "r1")
        await opened(journal, "r2", limit=50)
        outcomes = await asyncio.gather(
            *(journal.begin("r1", [call(f"c{i}", 10)]) for i in range(10)),
            *(journal.begin("r2", [call(f"c{i}", 10)]) for i in range(10)),
            journal.begin("absent", [call()]),
            return_exceptions=True,
        )
        assert outcomes[:10] == [None] * 10
        assert sum(isinstance(outcome, ReservationExceededError) for outcome in outcomes[10:20]) == 5
        assert isinstance(outcomes[20], ReservationClosedError)

    async def test_first_answer_stands(self, journal):
        """Two workers that pay for one key both go on with the first answer, and both payments are logged."""
        other = self.reopened(journal)
        for number, each in enumerate((journal, other)):
            await opened(each, f"r{number}")
            await each.begin(f"r{number}", [call()])
        one, two = answer("a", "d1", body=b"one"), answer("a", "d2", body=b"two")
        first = await journal.record("r0", call(), [one], Usage(1, 1, 10), NOW)
        second = await other.record("r1", call(), [two], Usage(1, 1, 20), NOW)
        assert first[key("a")].body == second[key("a")].body == b"one"
        assert [(await journal.seal(f"r{number}")).micro_usd for number in range(2)] == [10, 20]
        assert await journal.forget("d1") == 0
        assert await journal.forget("d2") == 1

    async def test_one_of_many_at_once_stands(self, journal):
        """However many record one key at the same moment, all are told the same answer."""
        places = [self.reopened(journal) for _ in range(4)]
        for number, each in enumerate(places):
            await opened(each, f"r{number}")
            await each.begin(f"r{number}", [call()])
        told = await asyncio.gather(
            *(
                each.record(f"r{number}", call(), [answer("a", body=b"%d" % number)], Usage(1, 1, 1), NOW)
                for number, each in enumerate(places)
            )
        )
        assert len({results[key("a")].body for results in told}) == 1

    async def test_damaged_result_is_absent_until_paid_again(self, journal):
        """A result that is not what was kept is not found, and makes room for the next."""
        await bought(journal, answer("a"))
        await self.damage(journal, key("a"))
        assert await journal.find([key("a")]) == {}
        await bought(journal, answer("a", body=b"again"), call_id="c2")
        assert (await journal.find([key("a")]))[key("a")].body == b"again"

    async def test_damaged_log_lets_nothing_begin(self, journal):
        """If nobody can say what was spent, nothing more is, and the seal says that it does not know."""
        await opened(journal)
        await self.damage_log(journal, "r1")
        with pytest.raises(ReservationClosedError):
            await self.reopened(journal).begin("r1", [call()])
        assert await self.reopened(journal).seal("r1") is None

    async def test_organisations_are_apart(self, journal):
        """Totals of an organisation are its own."""
        await bought(journal, answer("a"), org_id="one", call_id="c1")
        await bought(journal, answer("b"), answer("c"), org_id="two", call_id="c2")
        assert [(each.org_id, each.n_results) for each in await journal.totals(ResultSelection())] == [
            ("one", 1),
            ("two", 2),
        ]
        assert [each.n_results for each in await journal.totals(ResultSelection(org_id="two"))] == [2]

    async def test_totals_say_what_asking_again_would_cost(self, journal):
        """Totals add up exactly to what the calls cost."""
        await bought(journal, *(answer(i) for i in range(7)), usage=Usage(100, 10, 101), model="big", call_id="c1")
        await bought(journal, answer("x"), usage=Usage(5, 5, 3), model="small", call_id="c2")
        big, small = await journal.totals(ResultSelection())
        assert big.n_bytes > 0
        assert big == KeptTotal("org", "big", 7, big.n_bytes, Usage(100, 10, 101))
        assert (small.n_results, small.usage) == (1, Usage(5, 5, 3))

    async def test_prune_takes_what_is_chosen(self, journal):
        """Age, model and organisation choose together; what is chosen goes, and only that."""
        old = NOW - timedelta(days=90)
        await bought(journal, answer("old"), call_id="c1", now=old)
        await bought(journal, answer("old-other"), call_id="c2", now=old, model="other")
        await bought(journal, answer("new"), call_id="c3")
        await settle(journal, "r-c1", "r-c2", "r-c3")
        selection = ResultSelection(before=NOW - timedelta(days=30), model="m", org_id="org")
        [gone] = await journal.prune(selection)
        assert (gone.model, gone.n_results, gone.usage) == ("m", 1, Usage(30, 9, 60))
        assert set(await journal.find([key("old"), key("old-other"), key("new")])) == {key("old-other"), key("new")}
        assert await journal.prune(selection) == []

    async def test_prune_spares_reservations_that_are_not_settled(self, journal):
        """What a batch under way has paid for is needed if it dies."""
        await bought(journal, answer("a"))
        assert await journal.prune(ResultSelection()) == []
        await settle(journal, "r-c1")
        assert [each.n_results for each in await journal.prune(ResultSelection())] == [1]

    async def test_forgetting_a_document(self, journal):
        """What a document alone used goes; what another uses as well stays until that is forgotten too."""
        await bought(journal, answer("mine", "a"), answer("ours", "a", "b"), answer("theirs", "b"))
        assert await journal.forget("a") == 1
        assert set(await journal.find([key("mine"), key("ours"), key("theirs")])) == {key("ours"), key("theirs")}
        assert await journal.forget("a") == 0
        assert await journal.forget("b") == 2
        assert await journal.totals(ResultSelection()) == []

    async def test_adopted_result_outlives_its_first_document(self, journal):
        """A document that found a result keeps it, and takes it along when it goes."""
        await bought(journal, answer("a", "first"))
        for _ in range(2):
            await journal.adopt("second", [key("a"), key("absent")])
        assert await journal.forget("first") == 0
        assert set(await journal.find([key("a"), key("absent")])) == {key("a")}
        assert await journal.forget("second") == 1

    async def test_documents_with_like_names_are_apart(self, journal):
        """Forgetting `a` spares `a.b` and `a/b`, whatever the ids look like."""
        names = ["a", "a.b", "a/b", "..", "%2e", "ä"]
        for number, name in enumerate(names):
            await bought(journal, answer(number, name), call_id=f"c{number}")
        for number, name in enumerate(names):
            assert await journal.forget(name) == 1, name
            assert await journal.find([key(number)]) == {}
            assert sum(each.n_results for each in await journal.totals(ResultSelection())) == len(names) - number - 1

    async def test_cancelled_caller_does_not_lose_the_answer(self, journal):
        """Ctrl-C after the answer came does not undo the record."""
        await opened(journal)
        await journal.begin("r1", [call()])
        task = asyncio.create_task(journal.record("r1", call(), [answer("a")], Usage(1, 1, 10), NOW))
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await journal.shut()
        assert set(await self.reopened(journal).find([key("a")])) == {key("a")}
