"""Which snapshot is believed: the one the state names, and none for longer than a day."""

import shutil
from datetime import timedelta

import pytest

from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.clock import utc_now
from resources.document_source.local_source import LocalSource
from resources.document_state.model import Presence
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from sensors.listing import KIND, Listings
from sensors.listing_snapshot import ListingSnapshots
from sensors.plan import Discovery
from tests.discovery.pile import Pile, asked, in_hours


class TestBelieved:
    @pytest.mark.parametrize("n_documents", [1, 300])
    async def test_a_quiet_discovery_asks_the_state_twice(self, pile, n_documents):
        """If nothing changed, one record is read and the records are counted, however many documents there are."""
        pile.put(*(f"{i}.md" for i in range(n_documents)))
        await pile.run()
        calls = asked(pile)
        assert (await pile.run()).n_unchanged == n_documents
        assert calls == {"_read": 1, "_count_labels": 1}

    @pytest.mark.parametrize("n_documents", [1, 300])
    async def test_a_quiet_discovery_does_not_count_where_it_is_dear(self, dear_pile, n_documents):
        """Where counting reads every record, one record is all that is read."""
        dear_pile.put(*(f"{i}.md" for i in range(n_documents)))
        await dear_pile.run()
        calls = asked(dear_pile)
        assert (await dear_pile.run()).n_unchanged == n_documents
        assert calls == {"_read": 1}

    @pytest.mark.parametrize("n_documents", [10, 300])
    async def test_changes_cost_what_they_are(self, pile, n_documents):
        """One new, one changed and one gone cost the same among ten documents and among hundreds."""
        pile.put(*(f"{i}.md" for i in range(n_documents)))
        await pile.run()
        pile.put("new.md")
        pile.put("1.md", text="other")
        pile.remove("2.md")
        calls = asked(pile)
        found = await pile.run()
        assert (len(found.new), len(found.changed), len(found.vanished)) == (1, 1, 1)
        assert calls == {"_read": 4, "_write": 4, "_count_labels": 1}

    async def test_busy_documents_alone_are_looked_at_again(self, pile):
        """A change that had to wait costs a look at that document, and no snapshot each time."""
        pile.put("busy.md", "other.md")
        await pile.run()
        await pile.claim("busy.md")
        pile.put("busy.md", text="other")
        await pile.run()
        calls = asked(pile)
        assert (await pile.run()).n_busy == 1
        assert calls == {"_read": 2, "_count_labels": 1}

    async def test_only_the_source_that_is_listed(self, pile):
        """Documents of other sources are neither entries nor vanished."""
        other = pile.root.with_name("others")
        other.mkdir()
        (other / "x.md").write_text("x")
        listings = Listings(pile.artifacts, pile.backend)
        elsewhere = Discovery(LocalSource("others", other, "default"), pile.state, listings, ["s"], 0.5)
        await elsewhere.run(pile.partitions, utc_now)
        pile.put("a.md")
        assert len((await pile.run()).new) == 1
        assert list(await pile.snapshot()) == ["docs:a.md"]
        found = await elsewhere.run(pile.partitions, utc_now)
        assert (found.n_unchanged, found.vanished) == (1, [])


class TestNotBelieved:
    @pytest.mark.parametrize("damage", ["empty", "junk", "half", "a bit", "another's"])
    async def test_lost_snapshot(self, pile, damage):
        """A snapshot that is lost or damaged costs a look at every record, changes none, and hides nothing."""
        pile.put("a.md", "b.md")
        await pile.run()
        whole = pile.artifacts.read_hint("listing/docs")
        damaged = {
            "empty": b"",
            "junk": b"junk",
            "half": whole[: len(whole) // 2],
            "a bit": whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:],
        }
        if damage in damaged:
            pile.artifacts.write_hint("listing/docs", damaged[damage])
        else:
            ListingSnapshots(pile.artifacts).write("docs", "another", {})
        before = await pile.doc("a.md")
        pile.remove("b.md")
        found = await pile.run()
        assert (found.new, found.changed, found.vanished, found.n_unchanged) == ([], [], pile.ids("b.md"), 1)
        assert await pile.doc("a.md") == before
        await pile.check_snapshot()
        assert list(await pile.snapshot()) == ["docs:a.md"]

    async def test_lost_artifacts(self, pile, tmp_path):
        """An artifact store that is new knows no snapshot, and what vanished is found all the same."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.artifacts = SqliteArtifactStore(tmp_path / "new.db")
        pile.remove("b.md")
        assert (await pile.run()).vanished == pile.ids("b.md")

    async def test_older_artifacts(self, pile):
        """A snapshot that came back from a backup is not the one that the state names."""
        pile.put("a.md")
        await pile.run()
        older = pile.artifacts.read_hint("listing/docs")
        pile.put("b.md")
        await pile.run()
        pile.artifacts.write_hint("listing/docs", older)
        pile.remove("b.md")
        assert (await pile.run()).vanished == pile.ids("b.md")

    async def test_older_state(self, tmp_path):
        """A state restored from a backup knows older content than the snapshot does: all of it is found again."""
        pile = Pile(tmp_path, SqliteBackend(tmp_path / "state.db"))
        pile.put("changed.md", "back.md", "same.md")
        await pile.run()
        pile.remove("back.md")
        await pile.run()
        await pile.backend.close()
        shutil.copy(tmp_path / "state.db", tmp_path / "backup.db")
        pile.use(SqliteBackend(tmp_path / "state.db"))
        pile.put("changed.md", text="other")
        pile.put("new.md", "back.md")
        await pile.run()
        await pile.backend.close()
        pile.use(SqliteBackend(tmp_path / "backup.db"))
        assert (await pile.doc("back.md")).presence is Presence.VANISHED
        found = await pile.run()
        assert found.new == pile.ids("new.md")
        assert sorted(found.changed) == sorted(pile.ids("changed.md", "back.md"))
        await pile.check_truth()
        await pile.check_snapshot()
        await pile.backend.close()

    async def test_another_state(self, pile):
        """Two states in turn with the same artifacts: each has its own truth, whatever snapshot the other left."""
        pile.put("a.md", "b.md")
        await pile.run()
        first, second = pile.backend, MemoryBackend()
        pile.use(second)
        assert len((await pile.run()).new) == 2
        pile.remove("b.md")
        await pile.run()
        pile.use(first)
        assert (await pile.run()).vanished == pile.ids("b.md")
        pile.put("b.md")
        await pile.run()
        pile.use(second)
        assert (await pile.run()).changed == pile.ids("b.md")
        await pile.check_truth()

    async def test_another_organisation(self, pile):
        """The same files under another organisation are other documents: new, and the snapshot says nothing of them."""
        pile.put("a.md")
        await pile.run()
        pile.source = LocalSource("docs", pile.root, "another")
        found = await pile.run()
        assert (len(found.new), found.n_unchanged) == (1, 0)
        assert found.new != pile.ids("a.md")
        pile.source = LocalSource("docs", pile.root, "default")
        found = await pile.run()
        assert (found.new, found.vanished, found.n_unchanged) == ([], [], 1)

    async def test_a_record_nobody_can_read(self, pile):
        """What another version wrote about a listing confirms nothing, and is replaced."""
        pile.put("a.md")
        await pile.run()
        found = await pile.backend.read(KIND, "docs")
        await pile.backend.compare_and_set(KIND, [Write("docs", b"[]", found.stamp)])
        assert (await pile.run()).n_unchanged == 1
        assert await pile.snapshot() is not None

    async def test_a_source_that_fails_then(self, pile):
        """Every record is looked at once, not at each listing that fails."""
        pile.put("a.md")
        await pile.run()
        pile.artifacts.write_hint("listing/docs", b"")
        hidden = pile.root.rename(pile.root.with_name("unmounted"))
        with pytest.raises(Exception, match="does not exist"):
            await pile.run()
        calls = asked(pile)
        with pytest.raises(Exception, match="does not exist"):
            await pile.run()
        assert calls == {"_read": 1, "_count_labels": 1}
        hidden.rename(pile.root)
        assert (await pile.run()).n_unchanged == 1

    async def test_below_a_prefix(self, pile):
        """A discovery below a prefix confirms entries for the whole source."""
        pile.put("a/1.md", "b/2.md")
        await pile.run()
        pile.artifacts.write_hint("listing/docs", b"")
        pile.put("a/3.md")
        pile.remove("b/2.md")
        found = await pile.run(prefix=b"a")
        assert (found.new, found.vanished) == (pile.ids("a/3.md"), [])
        await pile.check_snapshot()
        assert (await pile.run()).vanished == pile.ids("b/2.md")

    async def test_preview(self, pile):
        """A preview without a snapshot asks the records, and leaves everything as it is."""
        pile.put("a.md", "b.md")
        await pile.run()
        pile.artifacts.write_hint("listing/docs", b"")
        pile.remove("b.md")
        calls = asked(pile)
        assert (await pile.discovery().preview())[0] == [("docs:b.md", "vanished")]
        assert not calls["_write"]
        assert pile.artifacts.read_hint("listing/docs") == b""


class TestDaily:
    """Where records are not counted, for there the day is what finds lost ones."""

    @pytest.mark.parametrize(("hours", "due"), [(0, False), (23, False), (25, True), (-1, False), (-25, True)])
    async def test_every_record_is_compared_once_a_day(self, dear_pile, hours, due):
        """A day after the last time, or with a clock that is a day off, what the records lack is found."""
        dear_pile.put("a.md", "b.md")
        await dear_pile.run()
        await dear_pile.lose("a.md")
        found = await dear_pile.run(clock=in_hours(hours))
        assert found.new == (dear_pile.ids("a.md") if due else [])
        calls = asked(dear_pile)
        await dear_pile.run(clock=in_hours(hours))
        assert not calls["_list"]

    async def test_changes_do_not_put_it_off(self, dear_pile):
        """Discoveries that find changes keep the time of the last full one."""
        dear_pile.put("a.md", "b.md")
        await dear_pile.run()
        dear_pile.put("c.md")
        await dear_pile.run(clock=in_hours(20))
        await dear_pile.lose("a.md")
        dear_pile.put("d.md")
        found = await dear_pile.run(clock=in_hours(25))
        assert sorted(found.new) == sorted(dear_pile.ids("a.md", "d.md"))

    async def test_as_often_as_it_is_told(self, dear_pile):
        """The time between two is a setting."""
        dear_pile.put("a.md")
        await dear_pile.run()
        await dear_pile.lose("a.md")
        hourly = Listings(dear_pile.artifacts, dear_pile.backend, timedelta(hours=1))
        discovery = Discovery(dear_pile.source, dear_pile.state, hourly, ["s"], 0.5)
        assert (await discovery.run(dear_pile.partitions, in_hours(0.9))).new == []
        assert (await discovery.run(dear_pile.partitions, in_hours(1.1))).new == dear_pile.ids("a.md")
