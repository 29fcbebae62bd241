"""The way out of the stores: proven by a read, and with everything that was made of it where a person asked for it."""

from datetime import timedelta

import pytest

from resources.artifact_store.artifact_key import tag_of
from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.clock import utc_now
from resources.document_state import removals
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import LinkState, Presence
from resources.document_state.reasons import Reason
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import BuildResult
from tests.engine.faulty_parts import Unavailable
from tests.engine.workshop import STAMP, Interrupted
from tests.paid_results.contract import answer, bought
from tests.paid_results.contract import key as key_of_answer


class Keeps(DuckDBStore):
    """A store that calls a document removed and still has it."""

    def remove(self, removals):
        """See Store."""
        return [BuildResult(removal.document_id) for removal in removals]


class DiesBeforeTheLink(DuckDBStore):
    """The process ends right after the store is written."""

    def write(self, builds):
        """See Store."""
        super().write(builds)
        raise Interrupted


async def filled(shop, *keys: str) -> None:
    """Documents of equal content in two stores."""
    shop.stores["t"] = shop.duckdb("t")
    for key in keys:
        shop.put(key, "the same text")
    await shop.discover()
    await shop.pull()


async def request_deletion(shop, key: str) -> None:
    """What `ingest delete` does first."""
    doc = await shop.doc(key)
    assert (await shop.state.set_many([(removals.deletion_requested(doc, utc_now()), doc)]))[0] is not None


def kept(shop) -> set[str]:
    """All artifacts there are."""
    return {found.key for page in shop.artifacts.pages() for found in page}


class TestProof:
    async def test_a_store_that_still_has_it(self, shop):
        """A removal that a read refutes has failed, with its reason, in the record; once it is true it is removed."""
        await filled(shop, "a.md")
        (shop.root / "a.md").unlink()
        await shop.discover()
        shop.stores["t"] = Keeps("t", shop.folder / "t.duckdb", STAMP)
        assert (await shop.pull()).results["a.md"].reason is Reason.NOT_REMOVED
        doc = await shop.doc("a.md")
        assert (doc.presence, list(doc.links)) == (Presence.VANISHED, ["t"])
        assert (doc.links["t"].state, doc.links["t"].reason) == (LinkState.FAILED, Reason.NOT_REMOVED)
        shop.stores["t"] = shop.duckdb("t")
        assert (await shop.work_on("a.md")).outcomes == {"a.md": Outcome.REMOVED}
        assert (shop.held("s"), shop.held("t")) == ({}, {})

    async def test_written_and_never_linked(self, shop):
        """What a worker wrote before it died, and no link tells of, is removed all the same."""
        shop.put("a.md", "text")
        await shop.discover()
        shop.stores["s"] = DiesBeforeTheLink("s", shop.folder / "s.duckdb", STAMP)
        with pytest.raises(Interrupted):
            await shop.pull()
        assert (list(shop.held()), (await shop.doc("a.md")).links) == ([shop.id_of("a.md")], {})
        shop.stores["s"] = shop.duckdb("s")
        (shop.root / "a.md").unlink()
        await shop.discover()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.REMOVED}
        assert shop.held() == {}

    async def test_store_that_is_not_configured(self, shop):
        """The record goes on naming a store that nobody could look into; it is never called removed from everywhere."""
        await filled(shop, "a.md")
        del shop.stores["t"]
        await request_deletion(shop, "a.md")
        assert (await shop.pull()).outcomes == {"a.md": Outcome.REMOVED}
        doc = await shop.doc("a.md")
        assert (doc.presence, list(doc.links)) == (Presence.ERASED, ["t"])
        shop.stores["t"] = shop.duckdb("t")
        await request_deletion(shop, "a.md")
        await shop.pull()
        assert ((await shop.doc("a.md")).links, shop.held("t")) == ({}, {})

    async def test_missing_documents_stay(self, shop):
        """In the grace period nobody removes a document, not even who names it, nor is it read."""
        await filled(shop, "a.md")
        doc = await shop.doc("a.md")
        await shop.state.set_many([(removals.unlisted(doc, timedelta(days=1), utc_now()), doc)])
        assert (await shop.pull()).reports == []
        assert (await shop.work_on("a.md", named=True, force=True)).outcomes == {"a.md": Outcome.UNCHANGED}
        assert len(shop.held("s")) == len(shop.held("t")) == 1


class TestDeletion:
    async def test_everything_of_it_goes_and_of_no_other(self, shop):
        """Of two documents of equal content each is deleted in turn, with every artifact: the other stays."""
        await filled(shop, "a.md", "b.md")
        shop.config_parts["chunker"] = "c2"
        await shop.work_on("a.md", "b.md", named=True, force=True)
        shop.artifacts.begin_generation()
        await shop.work_on("a.md", named=True, force=True)
        assert len(kept(shop)) >= 3
        await request_deletion(shop, "a.md")
        assert (await shop.pull()).outcomes == {"a.md": Outcome.REMOVED}
        other = await shop.doc("b.md")
        assert other.artifact in kept(shop)
        assert all(key.startswith(tag_of(other.document_id)) for key in kept(shop))
        for store in ("s", "t"):
            assert list(shop.held(store)) == [shop.id_of("b.md")]
            assert shop.found("the same text", store) == "the same text"
        await request_deletion(shop, "b.md")
        await shop.pull()
        assert (kept(shop), shop.held("s"), shop.held("t")) == (set(), {}, {})
        assert (await shop.pull()).reports == []

    async def test_a_vanished_document_can_be_deleted(self, shop):
        """What vanished and left its artifact behind loses it, and stays away from then on."""
        await filled(shop, "a.md")
        (shop.root / "a.md").unlink()
        await shop.discover()
        await shop.pull()
        assert len(kept(shop)) == 1
        await request_deletion(shop, "a.md")
        await shop.pull()
        assert (kept(shop), (await shop.doc("a.md")).presence) == (set(), Presence.ERASED)
        shop.put("a.md", "the same text")
        await shop.discover()
        assert (await shop.pull()).reports == []

    async def test_answers_go_with_their_last_document(self, shop):
        """An answer that was paid for stays while a document of equal content uses it, and goes with the last one."""
        await filled(shop, "a.md", "b.md")
        await bought(shop.journal, answer("equal", shop.id_of("a.md"), shop.id_of("b.md")))
        for name, left in (("a.md", {key_of_answer("equal")}), ("b.md", set())):
            await request_deletion(shop, name)
            await shop.pull()
            assert set(await shop.journal.find([key_of_answer("equal")])) == left

    async def test_without_paid_answers_no_journal_is_made(self, shop):
        """Deleting in a project that never paid for anything leaves no journal behind."""
        await filled(shop, "a.md")
        await request_deletion(shop, "a.md")
        await shop.pull()
        assert not shop.journal.path.exists()

    async def test_artifacts_that_cannot_be_removed(self, shop, monkeypatch):
        """The record says that it is being deleted until its artifacts are gone as well; the next run goes on."""
        await filled(shop, "a.md")
        await request_deletion(shop, "a.md")

        def refuse(_):
            raise ArtifactStoreError("no answer")

        monkeypatch.setattr(shop.artifacts, "remove_documents", refuse)
        with pytest.raises(ArtifactStoreError):
            await shop.pull()
        doc = await shop.doc("a.md")
        assert (doc.presence, doc.claim, shop.held("s")) == (Presence.DELETING, None, {})
        monkeypatch.undo()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.REMOVED}
        assert kept(shop) == set()

    async def test_nothing_goes_before_every_store_is_rid_of_it(self, shop):
        """While one store holds it, its artifacts stay, and the record says which store it is."""
        await filled(shop, "a.md")
        await request_deletion(shop, "a.md")
        shop.stores["t"] = Unavailable("t", shop.folder / "t.duckdb", STAMP)
        assert (await shop.pull()).outcomes == {"a.md": Outcome.FAILED}
        doc = await shop.doc("a.md")
        assert (doc.presence, list(doc.links), len(kept(shop))) == (Presence.DELETING, ["t"], 1)

    async def test_restored(self, shop):
        """A restored document is read and built again, above the fences of its removal."""
        await filled(shop, "a.md")
        await request_deletion(shop, "a.md")
        await shop.pull()
        doc = await shop.doc("a.md")
        await shop.state.set_many([(removals.restored(doc, ("s", "t"), utc_now()), doc)])
        assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        assert list(shop.held("s")) == list(shop.held("t")) == [shop.id_of("a.md")]
        assert (await shop.discover()).changed == []

    @pytest.mark.parametrize(
        ("content", "outcome"),
        [("# Fine\n\nText.", Outcome.SUCCEEDED), ("", Outcome.FAILED), ("\0\1\2\3" * 99, Outcome.SKIPPED)],
    )
    async def test_restored_is_read_once(self, shop, content, outcome):
        """Whatever came of it, the record says what was read, and the next listing finds nothing new in it."""
        shop.stores["t"] = shop.duckdb("t")
        shop.put("a.md", content)
        await shop.discover()
        await shop.pull()
        before = await shop.doc("a.md")
        await request_deletion(shop, "a.md")
        await shop.pull()
        doc = await shop.doc("a.md")
        await shop.state.set_many([(removals.restored(doc, ("s", "t"), utc_now()), doc)])
        assert (await shop.pull()).outcomes == {"a.md": outcome}
        after = await shop.doc("a.md")
        assert (after.size, after.content_version) == (len(content), before.content_version)
        assert (await shop.discover()).changed == []
