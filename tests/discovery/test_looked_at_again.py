"""What a listing could not settle, since a worker had it or a limit was reached, the next one looks at again."""

import pytest

from resources.clock import utc_now
from resources.document_state import removals, transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from sensors.listing import Listings
from sensors.plan import Discovery
from tests.discovery.pile import Pile, asked


class TestLookedAtAgain:
    """Whatever a record disagreed in is compared with it again, even if the listing is as it was before."""

    async def publish(self, pile: Pile, key: str) -> None:
        """A worker reads a file and publishes the version it read."""
        if (await pile.doc(key)).claim is None:
            await pile.claim(key)
        [listed] = pile.source.list_objects(key.encode())
        await pile.change(
            key,
            lambda doc: transitions.released(
                transitions.content_changed(doc, listed.content_version, 1, ("s",), utc_now()), utc_now()
            ),
        )

    async def test_changed_while_busy_and_back(self, pile):
        """What a worker read in between is not taken for what is there now."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.claim("a.md")
        pile.hide("a.md")
        pile.put("a.md", text="other")
        await pile.run()
        await self.publish(pile, "a.md")
        pile.bring_back("a.md")
        assert (await pile.run()).changed == pile.ids("a.md")

    async def test_gone_while_busy_and_back(self, pile):
        """The same if the file was gone in between."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.claim("a.md")
        pile.hide("a.md")
        pile.put("a.md", text="other")
        other = next(item.content_version for item in pile.source.list_objects(b"a.md"))
        pile.remove("a.md")
        assert (await pile.run()).n_busy == 1
        await pile.change(
            "a.md",
            lambda doc: transitions.released(transitions.content_changed(doc, other, 1, ("s",), utc_now()), utc_now()),
        )
        pile.bring_back("a.md")
        assert (await pile.run()).changed == pile.ids("a.md")

    async def test_claimed_twice_before_it_is_written(self, pile):
        """A discovery whose every write was refused still leaves a confirmed snapshot."""
        pile.put("a.md")
        await pile.run()
        pile.put("a.md", text="other")

        class Faster(RecordDocumentStateStore):
            async def set_many(self, changes):
                await pile.claim("a.md")
                return await super().set_many(changes)

        for _ in range(2):
            listings = Listings(pile.artifacts, pile.backend)
            discovery = Discovery(pile.source, Faster(pile.backend), listings, ("s",), 0.5)
            assert (await discovery.run(pile.partitions, utc_now)).n_busy == 1
            assert await pile.snapshot() == {"docs:a.md": ""}
            await pile.change("a.md", lambda doc: transitions.released(doc, utc_now()))

    async def test_changed_beyond_the_limit_and_back(self, pile):
        """The same for a change that one discovery had no room for."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.hide("a.md")
        pile.put("a.md", text="other")
        pile.put(*(f"{i}.md" for i in range(4)))
        whole = list(pile.source.list_objects())
        pile.source.list_objects = lambda prefix=b"", left_out=None: iter(
            sorted(whole, key=lambda item: item.source_uri)
        )
        assert (await pile.run(limit=4)).truncated
        assert (await pile.doc("a.md")).content_version != {i.source_uri: i.content_version for i in whole}["docs:a.md"]
        del pile.source.list_objects
        await self.publish(pile, "a.md")
        pile.bring_back("a.md")
        assert (await pile.run()).changed == pile.ids("a.md")

    @pytest.mark.parametrize("back", [False, True])
    async def test_claimed_while_it_vanishes(self, pile, back):
        """What somebody took before it could be marked as vanished stays known, and is looked at again."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.hide("a.md")

        class Faster(RecordDocumentStateStore):
            async def set_many(self, changes):
                await pile.claim("a.md")
                return await super().set_many(changes)

        listings = Listings(pile.artifacts, pile.backend)
        found = await Discovery(pile.source, Faster(pile.backend), listings, ("s",), 0.5).run(pile.partitions, utc_now)
        assert (found.vanished, found.n_busy) == ([], 1)
        await pile.check_snapshot()
        assert (await pile.snapshot())["docs:a.md"] == ""
        await pile.change("a.md", lambda doc: transitions.released(doc, utc_now()))
        if back:
            pile.bring_back("a.md")
        found = await pile.run()
        assert found.vanished == ([] if back else pile.ids("a.md"))
        await pile.check_truth()

    async def test_what_is_gone_for_good_is_forgotten(self, pile):
        """An entry whose record is present no more goes, and is not looked at for ever."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.change("a.md", lambda doc: removals.vanished(doc, utc_now()))
        pile.remove("a.md")
        assert (await pile.run()).vanished == []
        assert list(await pile.snapshot()) == ["docs:b.md"]

    async def test_a_version_a_worker_published(self, pile):
        """Once a record agrees with the listing again, it is not looked at any more."""
        pile.put("a.md")
        await pile.run()
        pile.put("a.md", text="other")
        await self.publish(pile, "a.md")
        assert (await pile.run()).n_unchanged == 1
        calls = asked(pile)
        assert (await pile.run()).n_unchanged == 1
        assert calls == {"_read": 1, "_count_labels": 1}
