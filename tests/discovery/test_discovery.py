"""Discovery with a real folder: what is new, changed and gone reaches the records."""

import os
from datetime import timedelta

import msgspec
import pytest

from resources.clock import utc_now
from resources.document_source.document_ids import document_id
from resources.document_source.document_source import SourceError
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import RetryPolicy
from sensors import groups
from sensors.discovered import Discovered, describe, total
from sensors.listing import Listings
from sensors.plan import Discovery


class TestNews:
    async def test_new(self, pile):
        """New documents get a partition and a record that is due, with all that is known of them."""
        pile.put("a.md", "deep/b.md")
        found = await pile.run()
        assert sorted(found.new) == sorted(pile.ids("a.md", "deep/b.md"))
        assert (found.changed, found.vanished, found.n_unchanged) == ([], [], 0)
        assert pile.partitions.ids == set(found.new)
        doc = await pile.doc("deep/b.md")
        assert (doc.source, doc.source_uri, doc.org_id, doc.size) == ("docs", "docs:deep/b.md", "default", 4)
        assert (doc.due_in, doc.presence, doc.extraction.status) == (("s",), Presence.PRESENT, Status.PENDING)
        assert set(await pile.state.list_due(utc_now(), 10)) == set(found.new)

    async def test_unchanged(self, pile):
        """What is as it was is not written."""
        pile.put("a.md", "b.md")
        await pile.run()
        before = await pile.doc("a.md")
        found = await pile.run()
        assert (found.new, found.changed, found.vanished, found.n_unchanged) == ([], [], [], 2)
        assert await pile.doc("a.md") == before

    async def test_unreadable_folder(self, pile):
        """A folder that cannot be listed hides no news of the others, and nothing is taken to have vanished."""
        pile.put("a.md", "b.md")
        await pile.run()
        (pile.root / "b.md").unlink()
        pile.put("c.md")
        whole = pile.source.list_objects

        def partly(prefix=b"", left_out=None):
            yield from whole(prefix, left_out)
            raise SourceError("docs", "cannot list 'private'", partial=True)

        pile.source.list_objects = partly
        found = await pile.run()
        assert (found.new, found.vanished) == (pile.ids("c.md"), [])
        assert "private" in found.incomplete

    async def test_changed(self, pile):
        """Other content makes a document due again, with its new version, size and today's stores."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.put("a.md", text="longer text")
        found = await pile.discovery(stores=("s", "t")).run(pile.partitions, utc_now)
        assert (found.new, found.changed, found.n_unchanged) == ([], pile.ids("a.md"), 1)
        doc = await pile.doc("a.md")
        assert (doc.size, doc.due_in, doc.extraction.status) == (11, ("s", "t"), Status.PENDING)

    async def test_vanished(self, pile):
        """What is gone is marked, once."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.remove("a.md")
        assert (await pile.run()).vanished == pile.ids("a.md")
        assert (await pile.doc("a.md")).presence is Presence.VANISHED
        again = await pile.run()
        assert (again.vanished, again.n_unchanged) == ([], 1)

    @pytest.mark.parametrize("removed_from_stores", [False, True])
    async def test_comes_back(self, pile, removed_from_stores):
        """What comes back, before or after it left the stores, is present and due, and a partition again."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.remove("a.md")
        await pile.run()
        if removed_from_stores:
            await pile.delete("a.md")
        pile.partitions.ids.clear()
        pile.put("a.md")
        assert (await pile.run()).changed == pile.ids("a.md")
        doc = await pile.doc("a.md")
        assert (doc.presence, doc.extraction.status) == (Presence.PRESENT, Status.PENDING)
        assert pile.partitions.ids == set(pile.ids("a.md"))

    async def test_skipped_and_changed_becomes_a_partition_again(self, pile):
        """A document that was skipped left the partitions; with other content it comes back."""
        pile.put("a.md")
        await pile.run()
        await pile.claim("a.md")
        await pile.change(
            "a.md", lambda doc: transitions.extraction_skipped(doc, Reason.UNSUPPORTED_TYPE, "", utc_now())
        )
        pile.partitions.ids.clear()
        pile.put("a.md", text="other")
        await pile.run()
        assert pile.partitions.ids == set(pile.ids("a.md"))

    async def test_renamed(self, pile):
        """A renamed document is a new one, and the old name has vanished."""
        pile.put("a.md")
        await pile.run()
        (pile.root / "a.md").rename(pile.root / "b.md")
        found = await pile.run()
        assert (found.new, found.vanished) == (pile.ids("b.md"), pile.ids("a.md"))

    async def test_two_documents_with_one_id(self, pile):
        """If two URIs ever had the same id, discovery stops instead of mixing them."""
        pile.put("a.md")
        await pile.run()
        await pile.change("a.md", lambda doc: msgspec.structs.replace(doc, source_uri="docs:other.md"))
        pile.put("a.md", text="other")
        with pytest.raises(ValueError, match="same id"):
            await pile.run()


class TestPrefix:
    async def test_others_do_not_vanish(self, pile):
        """A listing below a prefix takes news there, and concludes nothing of what lies elsewhere."""
        pile.put("a/1.md", "a/2.md", "ab/3.md", "4.md")
        await pile.run()
        pile.remove("a/1.md", "ab/3.md")
        pile.put("a/5.md", "b/6.md")
        found = await pile.run(prefix=b"a")
        assert (found.new, found.vanished, found.n_unchanged) == (pile.ids("a/5.md"), pile.ids("a/1.md"), 1)
        found = await pile.run()
        assert (found.new, found.vanished, found.n_unchanged) == (pile.ids("b/6.md"), pile.ids("ab/3.md"), 3)

    async def test_one_document(self, pile):
        """A listing of one document touches just that one."""
        pile.put("a.md", "a.md.bak")
        found = await pile.run(prefix=b"a.md")
        assert found.new == pile.ids("a.md")
        assert (await pile.run()).new == pile.ids("a.md.bak")


class TestLimit:
    async def test_goes_on_until_all_are_taken(self, pile):
        """A discovery that may take only some says that there is more, and the next ones take it, each once."""
        pile.put(*(f"{i:02}.md" for i in range(25)))
        runs = [await pile.run(limit=10) for _ in range(4)]
        assert [len(found.new) for found in runs] == [10, 10, 5, 0]
        assert [found.truncated for found in runs] == [True, True, False, False]
        assert len(await pile.what_is_known()) == 25
        assert len({key for found in runs for key in found.new}) == 25

    async def test_more_than_one_chunk(self, pile, monkeypatch):
        """More documents than are written at once are all taken, and all vanish."""
        monkeypatch.setattr(groups, "GROUP", 7)
        keys = [f"{i:02}.md" for i in range(30)]
        pile.put(*keys)
        assert sorted((await pile.run()).new) == sorted(pile.ids(*keys))
        pile.remove(*keys[:18])
        assert sorted((await pile.run()).vanished) == sorted(pile.ids(*keys[:18]))


class TestLies:
    async def test_source_that_lost_much_is_not_believed(self, pile):
        """If too large a share is missing at once, nothing is removed and everything else goes on."""
        keys = [f"{i:02}.md" for i in range(40)]
        pile.put(*keys)
        await pile.run()
        pile.remove(*keys[:25])
        pile.put("new.md")
        found = await pile.run()
        assert (found.vanished, found.vanished_refused, found.new) == ([], 25, pile.ids("new.md"))
        assert (await pile.doc("00.md")).presence is Presence.PRESENT
        assert "--accept-vanished" in describe(found)
        pile.put(*keys[:25])
        found = await pile.run()
        assert (found.new, found.vanished_refused) == ([], 0)

    async def test_a_person_may_believe_it(self, pile):
        """Told that it is true, discovery removes what is missing."""
        keys = [f"{i:02}.md" for i in range(40)]
        pile.put(*keys)
        await pile.run()
        pile.remove(*keys)
        assert (await pile.run()).vanished_refused == 40
        assert len((await pile.run(accept_vanished=True)).vanished) == 40

    @pytest.mark.parametrize(
        ("n_known", "n_gone", "believed"), [(20, 20, True), (21, 21, False), (60, 30, True), (60, 31, False)]
    )
    async def test_bounds(self, pile, n_known, n_gone, believed):
        """Up to twenty are always believed, and up to the share that the configuration says."""
        keys = [f"{i:02}.md" for i in range(n_known)]
        pile.put(*keys)
        await pile.run()
        pile.remove(*keys[:n_gone])
        found = await pile.run()
        assert (len(found.vanished), found.vanished_refused) == ((n_gone, 0) if believed else (0, n_gone))

    async def test_source_that_fails_changes_nothing(self, pile):
        """A source that cannot be listed is an error, and no record, partition or snapshot changes."""
        pile.put("a.md", "b.md")
        await pile.run()
        before = await pile.what_is_known()
        hidden = pile.root.rename(pile.root.with_name("unmounted"))
        with pytest.raises(SourceError):
            await pile.run(accept_vanished=True)
        with pytest.raises(SourceError):
            await pile.discovery().preview()
        assert await pile.what_is_known() == before
        hidden.rename(pile.root)
        assert (await pile.run()).n_unchanged == 2


class TestBusy:
    async def test_changed_while_a_worker_holds_it(self, pile):
        """A claimed document is left to its worker, and its change is seen again by the next listing."""
        pile.put("a.md")
        await pile.run()
        await pile.claim("a.md")
        pile.put("a.md", text="other")
        held = await pile.doc("a.md")
        for _ in range(2):
            found = await pile.run()
            assert (found.changed, found.n_busy) == ([], 1)
            assert await pile.doc("a.md") == held
        assert "being worked on" in describe(found)
        await pile.change("a.md", lambda doc: transitions.released(doc, utc_now()))
        assert (await pile.run()).changed == pile.ids("a.md")

    async def test_gone_while_a_worker_holds_it(self, pile):
        """A document that goes while it is worked on vanishes with the next listing after."""
        pile.put("a.md")
        await pile.run()
        await pile.claim("a.md")
        pile.remove("a.md")
        found = await pile.run()
        assert (found.vanished, found.n_busy) == ([], 1)
        await pile.change("a.md", lambda doc: transitions.released(doc, utc_now()))
        assert (await pile.run()).vanished == pile.ids("a.md")

    async def test_claimed_between_reading_and_writing(self, pile):
        """Whoever was faster keeps the document, and discovery sees it again."""
        pile.put("a.md")
        await pile.run()
        pile.put("a.md", text="other")

        class Faster(RecordDocumentStateStore):
            async def set_many(self, changes):
                await pile.claim("a.md")
                return await super().set_many(changes)

        whole = pile.state
        discovery = Discovery(pile.source, Faster(pile.backend), Listings(pile.artifacts, pile.backend), ("s",), 0.5)
        found = await discovery.run(pile.partitions, utc_now)
        assert (found.changed, found.n_busy) == ([], 1)
        assert (await whole.get_status(*pile.ids("a.md"))).claim is not None
        await pile.change("a.md", lambda doc: transitions.released(doc, utc_now()))
        assert (await pile.run()).changed == pile.ids("a.md")

    async def test_published_version_is_not_news(self, pile):
        """A change that a worker read and published already is no change to the next listing."""
        pile.put("a.md")
        await pile.run()
        pile.put("a.md", text="other")
        [listed] = pile.source.list_objects()
        await pile.claim("a.md")
        failed = lambda doc: transitions.extraction_failed(  # noqa: E731
            msgspec.structs.replace(doc, content_version=listed.content_version),
            Reason.MALFORMED,
            "",
            utc_now(),
            RetryPolicy(first_pause=timedelta(hours=1)),
        )
        await pile.change("a.md", failed)
        found = await pile.run()
        assert (found.changed, found.n_unchanged) == ([], 1)


class TestPreview:
    async def test_agrees_with_the_run(self, pile):
        """What a preview tells is what the run then does, and the preview changes nothing."""
        pile.put("same.md", "changed.md", "gone.md", "touched.md", "back.md")
        await pile.run()
        pile.remove("back.md")
        await pile.run()
        pile.put("new.md", "back.md")
        pile.put("changed.md", text="other")
        os.utime(pile.root / "touched.md", (1, 1))
        pile.remove("gone.md")
        before, snapshot, partitions = await pile.what_is_known(), await pile.snapshot(), set(pile.partitions.ids)
        assert snapshot is not None
        preview, _ = await pile.discovery().preview()
        assert (await pile.what_is_known(), await pile.snapshot(), pile.partitions.ids) == (
            before,
            snapshot,
            partitions,
        )
        found = await pile.run()
        for word, ids in (("new", found.new), ("changed", found.changed), ("vanished", found.vanished)):
            assert sorted(document_id("default", uri) for uri, news in preview if news == word) == sorted(ids)
        assert {uri for uri, _ in preview} == {
            f"docs:{name}.md" for name in ("new", "back", "changed", "touched", "gone")
        }
        assert (await pile.discovery().preview())[0] == []

    async def test_below_a_prefix(self, pile):
        """A preview below a prefix tells of nothing else."""
        pile.put("a/1.md", "b/2.md")
        assert (await pile.discovery().preview(b"a"))[0] == [("docs:a/1.md", "new")]


def test_total_adds_up():
    """Discoveries of several sources become one, count by count."""
    one = Discovered(["a"], ["b"], ["c"], 1, 2, 3, truncated=False)
    two = Discovered(["d"], [], [], 10, 20, 30, truncated=True)
    assert total({"one": one, "two": two}) == Discovered(["a", "d"], ["b"], ["c"], 11, 22, 33, truncated=True)
    assert total({}) == Discovered()
    assert describe(one).startswith("1 new, 1 changed, 1 vanished, 1 unchanged.")
    assert "There is more" in describe(two)
