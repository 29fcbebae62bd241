"""What is listed no more, and what a person has had deleted although it is listed."""

import contextlib
from datetime import timedelta

import pytest

from resources.clock import utc_now
from resources.document_state import removals
from resources.document_state.model import Presence
from sensors.listing import Listings
from tests.discovery.operations import Operations
from tests.discovery.pile import Died

GRACE = timedelta(hours=24)
HOUR = timedelta(hours=1)


def after(hours: float):
    """A clock that is so many hours ahead."""
    return lambda: utc_now() + timedelta(hours=hours)


@pytest.fixture
async def graceful(pile):
    """Two known documents, and a grace period of a day."""
    pile.grace = GRACE
    pile.put("a.md", "b.md")
    await pile.run()
    return pile


async def presence(pile, key: str) -> Presence:
    """Whether the source still has it, by its record."""
    return (await pile.doc(key)).presence


class TestGrace:
    async def test_missing_until_the_period_is_over(self, graceful):
        """A document stays until it was missing for the whole period; a listing before that changes nothing."""
        graceful.hide("a.md")
        found = await graceful.run()
        assert (found.vanished, found.n_missing, await presence(graceful, "a.md")) == ([], 1, Presence.MISSING)
        before = await graceful.doc("a.md")
        found = await graceful.run(after(23))
        assert (found.vanished, found.n_missing) == ([], 1)
        assert await graceful.doc("a.md") == before
        found = await graceful.run(after(25))
        assert (found.vanished, found.n_missing) == (graceful.ids("a.md"), 0)
        assert await presence(graceful, "a.md") is Presence.VANISHED
        await graceful.check_snapshot()

    async def test_listed_again_costs_nothing(self, graceful):
        """An object that is there again as it was leaves its document as it was, but for its stamp; nothing is due."""
        before = await graceful.doc("a.md")
        graceful.hide("a.md")
        await graceful.run()
        graceful.bring_back("a.md")
        found = await graceful.run(after(2))
        assert (found.new, found.changed, found.n_unchanged) == ([], [], 2)
        doc = await graceful.doc("a.md")
        assert (doc.presence, doc.extraction, doc.links, doc.due_in) == (
            Presence.PRESENT,
            before.extraction,
            before.links,
            before.due_in,
        )
        assert (await graceful.run()).n_unchanged == 2
        graceful.hide("a.md")
        assert (await graceful.run(after(30))).n_missing == 1  # a period of its own

    async def test_other_content_within_the_period(self, graceful):
        """An object that comes back with other content is a changed one."""
        graceful.remove("a.md")
        await graceful.run()
        graceful.put("a.md", text="other content")
        assert (await graceful.run()).changed == graceful.ids("a.md")
        assert await presence(graceful, "a.md") is Presence.PRESENT

    async def test_a_failed_listing_ends_no_period(self, graceful, monkeypatch):
        """Only a listing that succeeded removes: what cannot be listed when the period ends keeps everything."""
        graceful.hide("a.md")
        await graceful.run()
        root = graceful.root.rename(graceful.root.with_name("unmounted"))
        with pytest.raises(Exception, match="documents"):
            await graceful.run(after(100))
        assert await presence(graceful, "a.md") is Presence.MISSING
        root.rename(graceful.root)
        assert (await graceful.run(after(100))).vanished == graceful.ids("a.md")

    async def test_clock_that_was_wrong(self, graceful):
        """A time that lies ahead begins the period again: a clock set back neither removes nor keeps for ever."""
        graceful.hide("a.md")
        await graceful.run(after(10_000))
        assert (await graceful.run(after(0))).vanished == []
        assert (await graceful.run(after(23))).vanished == []
        assert (await graceful.run(after(25))).vanished == graceful.ids("a.md")

    async def test_missing_ones_are_no_lie(self, pile):
        """What earlier listings lacked already does not make a later one look as if the source was not whole."""
        pile.grace = GRACE
        names = [f"{i:03d}.md" for i in range(60)]
        pile.put(*names)
        await pile.run()
        for start in range(0, 45, 15):
            pile.remove(*names[start : start + 15])
            assert (await pile.run()).vanished_refused == 0
        assert len((await pile.run(after(25))).vanished) == 45

    async def test_a_lie_marks_nothing_missing(self, pile):
        """A listing that lost too much leaves every document present."""
        pile.grace = GRACE
        names = [f"{i:03d}.md" for i in range(60)]
        pile.put(*names)
        await pile.run()
        pile.remove(*names)
        for _ in range(2):
            assert (await pile.run()).vanished_refused == 60
        assert await presence(pile, "000.md") is Presence.PRESENT

    async def test_death_anywhere(self, pile):
        """Wherever a discovery dies, the next ones mark, remove and take back the same."""
        pile.grace = GRACE
        pile.put("a.md", "b.md", "c.md")
        await pile.run()
        pile.remove("a.md")
        pile.hide("b.md")
        await pile.run()
        pile.bring_back("b.md")

        def dies():
            raise Died

        nth, happened = 1, True
        while happened:
            with Operations(pile, nth, dies) as operations:
                with contextlib.suppress(Died):
                    await pile.run(after(25))
            happened = operations.happened
            nth += 1
            await pile.check_snapshot()
        assert nth > 3
        assert [await presence(pile, key) for key in ("a.md", "b.md", "c.md")] == [
            Presence.VANISHED,
            Presence.PRESENT,
            Presence.PRESENT,
        ]

    async def test_preview_says_the_same(self, graceful):
        """`ingest plan` calls vanished only what a run would remove now."""
        graceful.hide("a.md")
        await graceful.run()
        assert await graceful.discovery().preview(clock=after(1)) == ([], (await graceful.discovery().preview())[1])
        news, _ = await graceful.discovery().preview(clock=after(25))
        assert [what for _, what in news] == ["vanished"]
        graceful.bring_back("a.md")
        assert (await graceful.discovery().preview(clock=after(1)))[0] == []


class TestDeletedByHand:
    async def test_stays_away_while_it_is_listed(self, pile):
        """No listing brings back what a person had deleted: unchanged, changed, reconciled or by path."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.delete_by_hand("a.md")
        for _ in range(2):
            found = await pile.run()
            assert (found.new, found.changed, found.vanished) == ([], [], [])
        pile.put("a.md", text="other content")
        for options in ({}, {"reconcile": True}, {"prefix": b"a.md"}):
            found = await pile.run(**options)
            assert (found.new, found.changed) == ([], [])
            assert await presence(pile, "a.md") is Presence.ERASED
        assert (await pile.discovery().preview())[0] == []
        await pile.check_snapshot()

    async def test_being_deleted(self, pile):
        """While it is on its way out a listing does not call it back either."""
        pile.put("a.md")
        await pile.run()
        await pile.change("a.md", lambda doc: removals.deletion_requested(doc, utc_now()))
        pile.put("a.md", text="other content")
        assert (await pile.run()).changed == []
        assert await presence(pile, "a.md") is Presence.DELETING

    async def test_stays_away_when_its_object_comes_back(self, pile):
        """That its object was gone for a while is no reason to bring it back: only a person does."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.delete_by_hand("a.md")
        pile.hide("a.md")
        assert (await pile.run()).vanished == []
        pile.bring_back("a.md")
        assert (await pile.run(reconcile=True)).new == []
        assert await presence(pile, "a.md") is Presence.ERASED

    async def test_costs_nothing_once_it_was_listed(self, pile):
        """A listing in which nothing changed reads no record of it."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.delete_by_hand("a.md")
        await pile.run()
        with Operations(pile, 0, lambda: None) as operations:
            await pile.run()
        assert operations.count == 2  # the snapshot's name, and the count by label

    async def test_restored(self, pile):
        """Restored, it is listed like any other: changed, vanished and all."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.delete_by_hand("a.md")
        await pile.run()
        await pile.change("a.md", lambda doc: removals.restored(doc, ("s",), utc_now()))
        await pile.run()
        pile.remove("a.md")
        assert (await pile.run()).vanished == pile.ids("a.md")

    async def test_restored_without_its_object(self, dear_pile):
        """Restored when its object is gone and a listing without it is known, the next listing misses it."""
        dear_pile.put("a.md", "b.md")
        await dear_pile.run()
        await dear_pile.delete_by_hand("a.md")
        dear_pile.remove("a.md")
        await dear_pile.run()
        await Listings(dear_pile.artifacts, dear_pile.backend).hold(dear_pile.source)
        await dear_pile.change("a.md", lambda doc: removals.restored(doc, ("s",), utc_now()))
        assert (await dear_pile.run()).vanished == dear_pile.ids("a.md")
