"""Which stores a run builds, and what becomes of documents in the others."""

import asyncio

import msgspec
import pytest

from resources.clock import utc_now
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import Presence, Status
from resources.document_state.reasons import Reason
from tests.engine.faulty_parts import ChokesOn, Unavailable
from tests.engine.workshop import STAMP


class TestStores:
    async def test_only_selected_stores_are_built(self, shop):
        """A run of one store leaves the other as it is, and the document due there."""
        shop.stores["t"] = shop.duckdb("t")
        shop.put("a.md", "text")
        await shop.discover()
        report = (await shop.work_on("a.md", stores=("t",))).of("a.md")
        assert (report.extracted, report.built) == (True, ("t",))
        assert (shop.held("s"), len(shop.held("t"))) == ({}, 1)
        assert (await shop.doc("a.md")).build.status is Status.PENDING
        parsed = shop.pool.n_parsed
        assert (await shop.pull()).of("a.md").built == ("s", "t")
        assert shop.pool.n_parsed == parsed
        assert (await shop.doc("a.md")).build.status is Status.COMPLETED

    async def test_extraction_alone(self, shop):
        """A run without stores extracts, and leaves the build pending."""
        shop.put("a.md", "text")
        await shop.discover()
        report = (await shop.work_on("a.md", stores=())).of("a.md")
        assert (report.extracted, report.built) == (True, ())
        assert (await shop.doc("a.md")).build.status is Status.PENDING

    async def test_store_that_is_no_longer_configured(self, shop):
        """A document due in a store that is no longer configured completes without it, and does not come back."""
        shop.stores["gone"] = Unavailable("gone", shop.folder / "gone.duckdb", STAMP)
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        del shop.stores["gone"]
        assert (await shop.work_on("a.md")).results["a.md"].status in (Outcome.SUCCEEDED, Outcome.UNCHANGED)
        doc = await shop.doc("a.md")
        assert (doc.due_in, doc.build.status) == (("s",), Status.COMPLETED)
        assert (await shop.pull()).reports == []

    async def test_new_document_due_in_an_unconfigured_store(self, shop):
        """A due document that names an unknown store is done once, not for ever."""
        shop.put("a.md", "text")
        await shop.discover()
        doc = await shop.doc("a.md")
        await shop.state.set_many([(msgspec.structs.replace(doc, due_in=("gone", "s")), doc)])
        reporter = await asyncio.wait_for(shop.pull(limit=50), 20)
        assert [report.result.status for report in reporter.reports] == [Outcome.SUCCEEDED]

    async def test_vanished_document_leaves_every_store(self, shop):
        """A document that is gone from its source is gone from the stores; its record remembers it."""
        shop.stores["t"] = shop.duckdb("t")
        shop.put("a.md", "text")
        shop.put("b.md", "other")
        await shop.discover()
        await shop.pull()
        (shop.root / "a.md").unlink()
        await shop.discover()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.REMOVED}
        assert list(shop.held("s")) == list(shop.held("t")) == [shop.id_of("b.md")]
        doc = await shop.doc("a.md")
        assert (doc.presence, doc.links, doc.claim) == (Presence.DELETED, {}, None)
        assert (await shop.pull()).reports == []

    async def test_document_that_comes_back(self, shop):
        """Removed and put there again, a document is extracted and built like a new one, above its old fence."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        (shop.root / "a.md").unlink()
        await shop.discover()
        await shop.pull()
        shop.put("a.md", "text")
        await shop.discover()
        reporter = await shop.pull()
        assert reporter.outcomes == {"a.md": Outcome.SUCCEEDED}
        assert list(shop.held()) == [shop.id_of("a.md")]

    @pytest.mark.parametrize("kind", [Unavailable, ChokesOn])
    async def test_failed_removal_waits(self, shop, kind):
        """A store that cannot remove is asked once a run; the document stays vanished and comes back after a pause."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        (shop.root / "a.md").unlink()
        await shop.discover()
        shop.stores["s"] = kind("s", shop.folder / "s.duckdb", STAMP)
        reporter = await shop.pull(limit=20)
        assert [report.result.status for report in reporter.reports] == [Outcome.FAILED]
        assert reporter.results["a.md"].reason in (Reason.STORE_UNAVAILABLE, Reason.INTERNAL_ERROR)
        doc = await shop.doc("a.md")
        assert (doc.presence, doc.claim) == (Presence.VANISHED, None)
        assert doc.build.next_attempt_at > utc_now()
        shop.stores["s"] = shop.duckdb("s")
        assert (await shop.work_on("a.md")).outcomes == {"a.md": Outcome.REMOVED}
        assert shop.held() == {}

    async def test_comes_back_after_half_a_removal(self, shop):
        """A document that left one store and not the other, and is there again as it was, stands in both."""
        shop.stores["t"] = shop.duckdb("t")
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        (shop.root / "a.md").rename(shop.folder / "a.md")
        await shop.discover()
        shop.stores["t"] = Unavailable("t", shop.folder / "t.duckdb", STAMP)
        assert (await shop.pull()).outcomes == {"a.md": Outcome.FAILED}
        assert shop.held("s") == {}
        shop.stores["t"] = shop.duckdb("t")
        (shop.folder / "a.md").rename(shop.root / "a.md")
        await shop.discover()
        await shop.pull()
        assert list(shop.held("s")) == list(shop.held("t")) == [shop.id_of("a.md")]
