"""Records the state has lost, or has too many of, are found by the next listing."""

from resources.clock import utc_now
from resources.document_source.local_source import LocalSource
from resources.document_state import removals
from resources.records.record import Write
from sensors.listing import Listings
from sensors.plan import Discovery
from tests.discovery.pile import asked, in_hours


class TestLost:
    """Records that somebody took out of the state by hand, or an expiry rule did."""

    async def test_one_is_found_at_once(self, pile):
        """Where counting is cheap, the next discovery finds what its record was lost of, and takes it as new."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.lose("a.md")
        found = await pile.run()
        assert (found.new, found.vanished, found.n_unchanged) == (pile.ids("a.md"), [], 1)
        await pile.check_truth()
        await pile.check_snapshot()
        calls = asked(pile)
        assert (await pile.run()).n_unchanged == 2
        assert calls == {"_read": 1, "_count_labels": 1}

    async def test_all_are_found_at_once(self, pile):
        """The same if nothing is left of any document."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.lose("a.md", "b.md")
        assert sorted((await pile.run()).new) == sorted(pile.ids("a.md", "b.md"))
        await pile.check_truth()

    async def test_and_gone_from_the_source_too(self, pile):
        """What is neither there nor known is nothing that vanished, and its entry goes."""
        pile.put("a.md", "b.md")
        await pile.run()
        await pile.lose("a.md")
        pile.remove("a.md")
        found = await pile.run()
        assert (found.new, found.vanished, found.n_unchanged) == ([], [], 1)
        assert list(await pile.snapshot()) == ["docs:b.md"]

    async def test_a_record_too_many(self, pile):
        """A record that came back from elsewhere, of a file that is gone, is found to have vanished."""
        pile.put("a.md", "b.md")
        await pile.run()
        kept = await pile.backend.read("document", *pile.ids("a.md"))
        await pile.lose("a.md")
        pile.remove("a.md")
        await pile.run()
        write = Write(kept.key, kept.value, None, kept.due_at, kept.label, kept.open)
        await pile.backend.compare_and_set("document", [write])
        assert (await pile.run()).vanished == pile.ids("a.md")

    async def test_records_of_other_sources_do_not_count(self, pile):
        """Neither other sources nor documents that vanished make a discovery read the records."""
        other = pile.root.with_name("others")
        other.mkdir()
        (other / "x.md").write_text("x")
        listings = Listings(pile.artifacts, pile.backend)
        await Discovery(LocalSource("others", other, "default"), pile.state, listings, ["s"], 0.5).run(
            pile.partitions, utc_now
        )
        pile.put("a.md", "b.md")
        await pile.run()
        pile.remove("b.md")
        await pile.run()
        calls = asked(pile)
        assert (await pile.run()).n_unchanged == 1
        assert calls == {"_read": 1, "_count_labels": 1}

    async def test_another_organisation_under_the_same_name(self, pile):
        """Labels do not tell whose documents are counted: the records are read each time, and nothing is wrong."""
        pile.put("a.md")
        await pile.run()
        pile.source = LocalSource("docs", pile.root, "another")
        await pile.run()
        calls = asked(pile)
        for _ in range(2):
            found = await pile.run()
            assert (found.new, found.changed, found.vanished, found.n_unchanged) == ([], [], [], 1)
        assert calls["_list"] >= 2

    async def test_where_counting_is_dear(self, dear_pile):
        """There a discovery of everything does not notice, and one below a prefix does, but only there."""
        dear_pile.put("a/1.md", "a/2.md", "ab.md", "b/3.md")
        await dear_pile.run()
        await dear_pile.lose("a/1.md", "ab.md", "b/3.md")
        assert (await dear_pile.run()).new == []
        found = await dear_pile.run(prefix=b"a")
        assert (found.new, found.n_unchanged) == (dear_pile.ids("a/1.md"), 1)
        assert (await dear_pile.run(prefix=b"b/3.md")).new == dear_pile.ids("b/3.md")
        assert (await dear_pile.run()).new == []
        assert (await dear_pile.run(reconcile=True)).new == dear_pile.ids("ab.md")
        await dear_pile.check_truth()
        await dear_pile.check_snapshot()

    async def test_a_prefix_costs_what_lies_below_it(self, dear_pile):
        """Records below a prefix are read once, together, and what is as it was is not written."""
        dear_pile.put(*(f"a/{i}.md" for i in range(50)), "b.md")
        await dear_pile.run()
        calls = asked(dear_pile)
        assert (await dear_pile.run(prefix=b"a")).n_unchanged == 50
        assert calls == {"_read": 2}

    async def test_as_many_as_before(self, pile):
        """Below a prefix a lost record is found although the number is right, for another came to be."""
        pile.put("a.md", "b.md")
        await pile.run()
        kept = await pile.backend.read("document", *pile.ids("a.md"))
        await pile.lose("a.md")
        label = kept.label
        await pile.backend.compare_and_set("document", [Write("another", kept.value, None, None, label, kept.open)])
        assert (await pile.run()).new == []
        assert (await pile.run(prefix=b"a.md")).new == pile.ids("a.md")

    async def test_no_longer_present(self, dear_pile):
        """A record that is there and says that its document vanished is no present one: the file is back."""
        dear_pile.put("a.md")
        await dear_pile.run()
        await dear_pile.change("a.md", lambda doc: removals.vanished(doc, utc_now()))
        assert (await dear_pile.run()).n_unchanged == 1
        assert (await dear_pile.run(prefix=b"a.md")).changed == dear_pile.ids("a.md")

    async def test_lost_and_gone_below_a_prefix(self, dear_pile):
        """An entry that was dropped is not in the next snapshot, although nothing was written."""
        dear_pile.put("a.md", "b.md")
        await dear_pile.run()
        await dear_pile.lose("a.md")
        dear_pile.remove("a.md")
        found = await dear_pile.run(prefix=b"a.md")
        assert (found.new, found.vanished) == ([], [])
        assert list(await dear_pile.snapshot()) == ["docs:b.md"]

    async def test_wanted(self, dear_pile):
        """Who wants it has all records read, and the next day's comparison counts from then."""
        dear_pile.put("a.md", "b.md")
        await dear_pile.run()
        await dear_pile.lose("a.md")
        found = await dear_pile.run(clock=in_hours(20), reconcile=True)
        assert (found.new, found.n_unchanged) == (dear_pile.ids("a.md"), 1)
        calls = asked(dear_pile)
        assert (await dear_pile.run(clock=in_hours(30))).n_unchanged == 2
        assert calls == {"_read": 1}

    async def test_preview(self, pile):
        """A preview tells of lost records as the run does, and leaves state and snapshot as they are."""
        pile.put("a.md", "b/1.md")
        await pile.run()
        await pile.lose("a.md")
        before, snapshot, calls = await pile.what_is_known(), await pile.snapshot(), asked(pile)
        assert (await pile.discovery().preview())[0] == [("docs:a.md", "new")]
        assert not calls["_write"]
        assert (await pile.what_is_known(), await pile.snapshot()) == (before, snapshot)
        assert (await pile.run()).new == pile.ids("a.md")

    async def test_preview_below_a_prefix(self, dear_pile):
        """The same below a prefix, where records are not counted."""
        dear_pile.put("a.md", "b.md")
        await dear_pile.run()
        await dear_pile.lose("a.md", "b.md")
        snapshot, calls = await dear_pile.snapshot(), asked(dear_pile)
        assert (await dear_pile.discovery().preview())[0] == []
        assert (await dear_pile.discovery().preview(b"a.md"))[0] == [("docs:a.md", "new")]
        assert not calls["_write"]
        assert await dear_pile.snapshot() == snapshot
