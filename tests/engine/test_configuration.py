"""Another configuration: marked by a pass, left alone by every run, made anew where somebody asks."""

import os

import pytest

from ingest_assets.engine.build_stage import BuildStage
from ingest_assets.upkeep.marking import Marked, mark
from ingest_assets.upkeep.staleness import Configured
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import Lifecycle, LinkState, Status
from tests.engine.faulty_parts import Unavailable
from tests.engine.workshop import CONFIG_PARTS, STAMP

STORE_PARTS = {"embedder": str(STAMP), "store": "duckdb"}


def configured(chunker="c1", **stores):
    """What the configuration says; a store's keyword overrides its embedder."""
    parts = {slug: {**STORE_PARTS, **({"embedder": embedder} if embedder else {})} for slug, embedder in stores.items()}
    return Configured({**CONFIG_PARTS, "chunker": chunker}, parts)


@pytest.fixture
async def two_stores(shop):
    """Three documents, standing in two stores."""
    shop.stores["t"] = shop.duckdb("t")
    for i in range(3):
        shop.put(f"{i}.md", f"text {i}")
    await shop.discover()
    await shop.pull()
    return shop


async def states(shop, key="0.md"):
    """The links of a document."""
    return {slug: link.state for slug, link in (await shop.doc(key)).links.items()}


class TestMarking:
    async def test_marks_the_store_that_differs(self, two_stores):
        """The links of one store become Stale; builds stay complete, and no run takes anything up."""
        marked = await mark(two_stores.state, configured(s="new 1", t=""))
        assert marked == Marked(3, 0, 0, {"s": 3})
        doc = await two_stores.doc("0.md")
        assert (doc.lifecycle, doc.build.status) == (Lifecycle.STALE, Status.COMPLETED)
        assert await states(two_stores) == {"s": LinkState.STALE, "t": LinkState.INGESTED}
        assert (await two_stores.pull()).reports == []

    async def test_a_changed_extraction_marks_every_store(self, two_stores):
        """What was cut otherwise is stale wherever it stands."""
        marked = await mark(two_stores.state, configured("c2", s="", t=""))
        assert marked.stores == {"s": 3, "t": 3}
        assert (await two_stores.doc("0.md")).extraction.status is Status.COMPLETED

    async def test_is_idempotent_and_reads_only_what_differs(self, two_stores, monkeypatch):
        """A second pass reads no record: labels say that each is marked."""
        await mark(two_stores.state, configured(s="new 1", t=""))
        read = []
        get_many = RecordDocumentStateStore.get_many

        async def counted(state, ids):
            read.extend(ids)
            return await get_many(state, ids)

        monkeypatch.setattr(RecordDocumentStateStore, "get_many", counted)
        assert await mark(two_stores.state, configured(s="new 1", t="")) == Marked()
        assert read == []

    async def test_configuration_set_back(self, two_stores):
        """Marked again under the old configuration, all is Ingested without any work."""
        before = await two_stores.doc("0.md")
        await mark(two_stores.state, configured("c2", s="new 1", t=""))
        assert await mark(two_stores.state, configured(s="", t="")) == Marked(0, 3, 0, {})
        assert (await two_stores.doc("0.md")).links == before.links

    async def test_skips_what_is_claimed(self, two_stores):
        """A document in a worker's hands is left, and found by the next pass."""
        doc = await two_stores.doc("1.md")
        held = transitions.claimed(doc, "w", "run", utc_now(), extract=False)
        [held] = await two_stores.state.set_many([(held, doc)])
        assert await mark(two_stores.state, configured(s="new 1", t="")) == Marked(2, 0, 1, {"s": 2})
        await two_stores.state.set_many([(transitions.released(held, utc_now()), held)])
        two_stores.config_parts = dict(CONFIG_PARTS)
        assert await mark(two_stores.state, configured(s="new 1", t="")) == Marked(1, 0, 0, {"s": 1})

    async def test_a_label_of_an_earlier_version_is_renewed(self, two_stores, monkeypatch):
        """A label that only looks different costs one reading, not one in every pass."""
        doc = await two_stores.doc("0.md")
        monkeypatch.setattr("resources.document_state.label.config_hash", lambda parts: "as it once was")
        await two_stores.state.set_many([(doc, doc)])
        monkeypatch.undo()
        assert await mark(two_stores.state, configured(s="", t="")) == Marked()
        after = await two_stores.doc("0.md")
        assert after.version > doc.version
        assert await mark(two_stores.state, configured(s="", t="")) == Marked()
        assert await two_stores.doc("0.md") == after


class TestRuns:
    async def test_a_pull_leaves_what_is_stale_by_configuration(self, two_stores, monkeypatch):
        """A document that is due for another reason is not written into a store that only has another embedder."""
        await mark(two_stores.state, configured(s="", t="old 1"))
        await mark(two_stores.state, configured(s="old 1", t="old 1"))
        doc = await two_stores.doc("0.md")
        asked = transitions.claimed(doc, "w", "run", utc_now(), extract=False, renew=("s",))
        [asked] = await two_stores.state.set_many([(asked, doc)])
        await two_stores.state.set_many([(transitions.released(asked, utc_now()), asked)])
        monkeypatch.setattr(BuildStage, "parts_of", lambda _, doc: {"content": doc.artifact_hash, "embedder": "new 1"})
        written = []
        write = BuildStage.write

        def counted(stage, docs, artifacts, trust):
            written.extend((stage._store.slug, doc.document_id) for doc in docs)
            return write(stage, docs, artifacts, trust)

        monkeypatch.setattr(BuildStage, "write", counted)
        assert (await two_stores.pull()).outcomes == {"0.md": Outcome.SUCCEEDED}
        assert written == [("s", doc.document_id)]
        assert (await two_stores.doc("0.md")).links["t"] == doc.links["t"]

    async def test_asked_for_anew_without_extraction(self, two_stores, monkeypatch):
        """A store's own configuration differs: it is written from the artifacts, and the other store is left."""
        before, parsed = await two_stores.doc("0.md"), two_stores.pool.n_parsed
        monkeypatch.setattr(BuildStage, "parts_of", lambda _, doc: {"content": doc.artifact_hash, "embedder": "new 1"})
        reporter = await two_stores.work_on("0.md", stores=("s",), named=True, renew_stores=True, renew_extraction=True)
        assert reporter.outcomes == {"0.md": Outcome.SUCCEEDED}
        after = await two_stores.doc("0.md")
        assert two_stores.pool.n_parsed == parsed
        assert (after.links["s"].parts["embedder"], after.links["t"]) == ("new 1", before.links["t"])
        assert after.build.status is Status.COMPLETED

    async def test_asked_for_anew_with_extraction(self, two_stores):
        """The extraction's configuration differs: it is extracted for the store that was asked for, once."""
        two_stores.config_parts["extractor"] = "none 2"
        await mark(two_stores.state, Configured(two_stores.config_parts, {"s": STORE_PARTS, "t": STORE_PARTS}))
        parsed = two_stores.pool.n_parsed
        asked = {"stores": ("s",), "named": True, "renew_stores": True, "renew_extraction": True}
        assert (await two_stores.work_on("0.md", **asked)).outcomes == {"0.md": Outcome.SUCCEEDED}
        doc = await two_stores.doc("0.md")
        assert two_stores.pool.n_parsed == parsed + 1
        assert doc.extraction.parts["extractor"] == "none 2"
        assert (await states(two_stores))["s"] is LinkState.INGESTED
        assert (await two_stores.work_on("0.md", **asked)).outcomes == {"0.md": Outcome.UNCHANGED}
        assert (await two_stores.pull()).reports == []

    async def test_named_and_stale_by_extraction_is_told_and_kept(self, two_stores):
        """Materialized from the UI, a document that is stale by its extraction is told of, and stays stale."""
        two_stores.config_parts["extractor"] = "none 2"
        await mark(two_stores.state, Configured(two_stores.config_parts, {"s": STORE_PARTS, "t": STORE_PARTS}))
        report = (await two_stores.work_on("0.md", named=True, renew_stores=True)).of("0.md")
        assert (report.result.status, report.built) == (Outcome.UNCHANGED, ("s", "t"))
        assert set((await states(two_stores)).values()) == {LinkState.STALE}

    async def test_a_touched_file_ends_what_was_stale_by_configuration(self, two_stores):
        """Read again for its new times, it is extracted and built at today's configuration."""
        two_stores.config_parts["extractor"] = "none 2"
        await mark(two_stores.state, Configured(two_stores.config_parts, {"s": STORE_PARTS, "t": STORE_PARTS}))
        os.utime(two_stores.root / "0.md", (1, 1))
        await two_stores.discover()
        await two_stores.pull()
        assert set((await states(two_stores)).values()) == {LinkState.INGESTED}

    async def test_only_the_failed_store_is_mended(self, shop):
        """Asked for one store's failures, the other store, unavailable too, is neither asked nor changed."""
        shop.stores["t"] = Unavailable("t", shop.folder / "t.duckdb", STAMP)
        shop.stores["u"] = Unavailable("u", shop.folder / "u.duckdb", STAMP)
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        before = await shop.doc("a.md")
        shop.stores["t"] = shop.duckdb("t")
        report = (await shop.work_on("a.md", stores=("t",), named=True)).of("a.md")
        after = await shop.doc("a.md")
        assert (report.built, report.failed) == (("t",), ())
        assert (after.links["s"], after.links["u"]) == (before.links["s"], before.links["u"])
        assert (after.build.status, after.build.next_attempt_at) == (Status.FAILED, before.build.next_attempt_at)
