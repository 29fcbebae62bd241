"""Discoveries that die anywhere, and discoveries at the same time: nothing is lost, and nothing wrong is confirmed."""

import asyncio
import contextlib
import random

import pytest

from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Presence
from tests.discovery.operations import EVERY, Operations
from tests.discovery.pile import Died, Pile

MOST_OPERATIONS = 20


def die() -> None:
    """The process ends here."""
    raise Died


@pytest.fixture
async def with_news(pile: Pile) -> Pile:
    """One of each: new, changed, gone, unchanged. What is gone can come back just as it was."""
    pile.put("changed.md", "gone.md", "same.md")
    await pile.run()
    pile.put("new.md")
    pile.put("changed.md", text="other")
    pile.hide("gone.md")
    return pile


class TestDying:
    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_anywhere(self, with_news, nth):
        """Wherever a discovery dies, the next one leads to the truth, and the one after finds nothing to do."""
        with Operations(with_news, nth, die) as operations:
            try:
                await with_news.run()
            except Died:
                assert operations.happened
        await with_news.check_snapshot()
        await with_news.run()
        await with_news.check_truth()
        assert await with_news.snapshot() is not None
        await with_news.check_snapshot()
        again = await with_news.run()
        assert (again.new, again.changed, again.vanished, again.n_unchanged) == ([], [], [], 3)

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_and_what_was_gone_is_back(self, with_news, nth):
        """A document marked as vanished by a process that died then is found again, although its version is the old."""
        with Operations(with_news, nth, die):
            with contextlib.suppress(Died):
                await with_news.run()
        with_news.bring_back("gone.md")
        await with_news.run()
        await with_news.check_truth()
        await with_news.check_snapshot()

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_what_was_written_is_not_written_again(self, with_news, nth):
        """What a discovery wrote before it died is found as it is by the next, and not written once more."""
        with Operations(with_news, nth, die):
            with contextlib.suppress(Died):
                await with_news.run()
        before = {d.document_id: d async for d in with_news.state.iter_statuses()}
        await with_news.run()
        after = {d.document_id: d async for d in with_news.state.iter_statuses()}
        written = [key for key, doc in after.items() if key in before and doc.version > before[key].version]
        (settled,) = with_news.ids("same.md")
        assert settled not in written
        assert all(after[key].version <= 2 for key in after)

    async def test_all_of_it_was_tried(self, with_news):
        """The tests above reach the end: a discovery has fewer operations than they try."""
        with Operations(with_news, MOST_OPERATIONS, die) as operations:
            await with_news.run()
        assert 8 < operations.count < MOST_OPERATIONS - 1

    async def test_the_partition_comes_first(self, with_news):
        """Dead between partitions and records: the partition waits for its record, which comes with the next run."""
        add = with_news.partitions.add
        with_news.partitions.add = lambda ids: (add(ids), die())
        with pytest.raises(Died):
            await with_news.run()
        assert await with_news.doc("new.md") is None
        assert set(with_news.ids("new.md")) <= with_news.partitions.ids


class TestTwoAtOnce:
    """One discovery stops before any of its operations, and another does all of its own in between."""

    async def at_once(self, pile: Pile, nth: int, meanwhile) -> None:
        """Run a discovery, and another before its `nth` operation."""

        async def another() -> None:
            meanwhile()
            await pile.run()

        first = pile.discovery()
        with Operations(pile, nth, another):
            await first.run(pile.partitions, utc_now)
        await pile.check_snapshot()

    async def settle(self, pile: Pile) -> None:
        """The next discovery leads to the truth and confirms it."""
        await pile.run()
        await pile.check_truth()
        await pile.check_snapshot()
        assert await pile.snapshot() is not None
        again = await pile.run()
        assert (again.new, again.changed, again.vanished) == ([], [], [])

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_with_the_same_news(self, with_news, nth):
        """Both find the same: each document is taken once, and the next discovery knows all of them."""
        await self.at_once(with_news, nth, lambda: None)
        assert (await with_news.doc("new.md")).version == 1
        assert (await with_news.doc("changed.md")).version == 2
        await self.settle(with_news)

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_the_other_found_more(self, with_news, nth):
        """What only the other one saw is not forgotten by a snapshot of the first."""

        def meanwhile() -> None:
            with_news.put("later.md")
            with_news.remove("same.md")

        await self.at_once(with_news, nth, meanwhile)
        (with_news.root / "later.md").unlink(missing_ok=True)
        await self.settle(with_news)

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_removed_by_the_other_and_back(self, with_news, nth):
        """Removed by one while an older listing still has it, then back as it was: it is not taken as unchanged."""
        with_news.bring_back("gone.md")
        await self.at_once(with_news, nth, lambda: with_news.hide("gone.md"))
        with_news.bring_back("gone.md")
        await self.settle(with_news)

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_removed_by_the_older_listing(self, with_news, nth):
        """Removed by an older listing while a newer one has it: it comes back."""
        await self.at_once(with_news, nth, lambda: with_news.bring_back("gone.md"))
        await self.settle(with_news)

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_the_first_dies_at_once(self, with_news, nth):
        """The first dies where the other came in between: what it had written by then is known to the next."""

        async def another_and_death() -> None:
            await with_news.run()
            raise Died

        with Operations(with_news, nth, another_and_death):
            with contextlib.suppress(Died):
                await with_news.run()
        with_news.bring_back("gone.md")
        await self.settle(with_news)

    @pytest.mark.parametrize("nth", range(5, MOST_OPERATIONS))
    async def test_a_third_in_the_last_moment(self, with_news, nth):
        """Where two already know of each other, what a third confirms in between is not left standing."""
        with_news.put("older.md")

        async def another() -> None:
            (with_news.root / "older.md").unlink(missing_ok=True)
            await with_news.run()

        with Operations(with_news, nth, another), Operations(with_news, 4, another):
            await with_news.run()
        await with_news.check_snapshot()
        await self.settle(with_news)

    async def test_a_third(self, with_news):
        """Three at once end as two do."""

        async def second() -> None:
            with_news.put("second.md")
            with Operations(with_news, 6, third):
                await with_news.run()

        async def third() -> None:
            with_news.put("third.md")
            await with_news.run()

        with Operations(with_news, 6, second):
            await with_news.run()
        await with_news.check_snapshot()
        await self.settle(with_news)

    async def test_a_quiet_one_disturbs_nobody(self, with_news):
        """A discovery that finds nothing writes nothing, so that the other's snapshot is confirmed."""
        await with_news.run()
        before = await with_news.snapshot()
        await self.at_once(with_news, 1, lambda: None)
        assert await with_news.snapshot() == before

    async def test_a_worker_is_no_discovery(self, with_news):
        """Workers change records at any time and cost no snapshot."""

        async def claim() -> None:
            await with_news.change("same.md", lambda doc: transitions.claimed(doc, "w", "run", utc_now(), extract=True))

        with Operations(with_news, 5, claim):
            await with_news.run()
        assert await with_news.snapshot() is not None
        await with_news.check_snapshot()
        assert (await with_news.doc("same.md")).presence is Presence.PRESENT


class TestAnyOrder:
    @pytest.mark.parametrize("seed", range(25))
    async def test_any_interleaving(self, with_news, seed):
        """Three discoveries whose operations mix in any order, while files come and go: nothing wrong is confirmed."""
        choose = random.Random(seed)

        async def wait() -> None:
            for _ in range(choose.randrange(4)):
                await asyncio.sleep(0)

        async def move_files() -> None:
            for number in range(6):
                await asyncio.sleep(0)
                with_news.bring_back("gone.md")
                with_news.put(f"{number}.md")
                await asyncio.sleep(0)
                with_news.hide("gone.md")
                with_news.remove(f"{number}.md")

        async def discover() -> None:
            await wait()
            await with_news.run()

        with Operations(with_news, EVERY, wait):
            await asyncio.gather(move_files(), *(discover() for _ in range(3)))
        await with_news.check_snapshot()
        with_news.bring_back("gone.md")
        await with_news.run()
        await with_news.check_truth()
        await with_news.check_snapshot()
        assert await with_news.snapshot() is not None

    @pytest.mark.parametrize("nth", range(1, MOST_OPERATIONS))
    async def test_written_while_all_records_are_asked_for(self, with_news, nth):
        """Who writes records while another asks for all of them is seen by it or learns of it, even if it dies then."""
        slow, writes, asked = with_news.of_another_process(), asyncio.Event(), asyncio.Event()

        async def wait_until_asked() -> None:
            writes.set()
            await asked.wait()

        class DiesAfterTheSecondGroup(RecordDocumentStateStore):
            groups = 0

            async def set_many(self, changes):
                stored = await super().set_many(changes)
                self.groups += 1
                return stored if self.groups == 1 else die()

        async def begin_and_die() -> None:
            slow.state = DiesAfterTheSecondGroup(slow.backend)
            with Operations(slow, 6, wait_until_asked), contextlib.suppress(Died):
                await slow.run()

        async def let_it_write() -> None:
            asked.set()
            await asyncio.wait([dying])

        dying = asyncio.create_task(begin_and_die())  # it has written what is new, and is to mark what vanished
        await writes.wait()
        with_news.bring_back("gone.md")
        with Operations(with_news, nth, let_it_write):
            await with_news.run()
        await let_it_write()
        assert slow.state.groups == 2
        await with_news.check_snapshot()
        await with_news.run()
        await with_news.check_truth()
