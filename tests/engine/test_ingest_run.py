"""The engine: claim, extract, build, publish, report, with every part real."""

import asyncio
import os
import sqlite3

import pytest

from ingest_assets.engine.progress import Milestone
from resources.clock import utc_now
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import LinkState, Status
from resources.document_state.reasons import Reason
from resources.extractor.local_extractor import LocalExtractor
from resources.records.record import Write
from tests.engine.workshop import RecordedReports, workers


class TestHappyPath:
    @pytest.fixture(params=["memory", "sqlite"])
    def records(self, request):
        """On both backends."""
        return request.param

    async def test_from_file_to_store(self, shop):
        """Due documents are extracted, stand in the store, and their records say so; nobody holds anything after."""
        for i in range(25):
            shop.put(f"folder/{i}.md", f"# Title {i}\n\nText number {i}.")
        await shop.discover()
        reporter = await shop.pull()
        assert set(reporter.outcomes.values()) == {Outcome.SUCCEEDED}
        assert len(reporter.outcomes) == reporter.reached.count(Milestone.DONE) == 25
        doc = await shop.doc("folder/3.md")
        assert (doc.extraction.status, doc.build.status, doc.claim) == (Status.COMPLETED, Status.COMPLETED, None)
        assert (doc.title, doc.media_type, doc.n_chunks, doc.last_run_id) == ("Title 3", "text/markdown", 1, "run")
        assert doc.links["s"].state is LinkState.INGESTED
        assert doc.links["s"].parts["content"] == doc.artifact_hash
        assert shop.held() == {shop.id_of(f"folder/{i}.md"): 1 for i in range(25)}
        assert "number 7" in shop.found("# Title 7\n\nText number 7.")
        assert await shop.state.list_due(utc_now(), 100) == []
        assert await workers(shop) == []

    async def test_reports_tell_what_to_materialize(self, shop):
        """A report names the extraction and each store, with the record as it was published."""
        shop.stores["t"] = shop.duckdb("t")
        shop.put("a.md", "text")
        await shop.discover()
        report = (await shop.pull()).of("a.md")
        assert (report.extracted, report.built, report.failed) == (True, ("s", "t"), ())
        assert report.doc == await shop.doc("a.md")
        assert report.result.run_id == "run"
        assert (report.result.n_chunks, report.result.reason, report.result.error) == (1, None, "")

    async def test_progress_moves_before_a_group_is_written(self, shop):
        """Each document is told of when it is read and when it is extracted, whether that succeeds or is needed."""
        shop.put("a.md", "text a")
        await shop.discover()
        await shop.pull()
        shop.put("b.md", "text b")
        shop.put("c.pdf", b"%PDF-1.7 broken")
        await shop.discover()
        (shop.root / "b.md").touch()
        reporter = await shop.work_on("a.md", "b.md", "c.pdf")
        assert reporter.outcomes["c.pdf"] is Outcome.FAILED
        assert reporter.reached == [*2 * [Milestone.READ], *2 * [Milestone.EXTRACTED], *3 * [Milestone.DONE]]
        (shop.root / "b.md").touch()
        await shop.discover()
        unchanged = await shop.pull()
        assert (unchanged.outcomes, unchanged.reached) == ({"b.md": Outcome.UNCHANGED}, list(Milestone))

    async def test_groups_are_no_larger_than_asked(self, shop):
        """A run of many documents reports them in groups."""
        shop.group = 4
        for i in range(10):
            shop.put(f"{i}.md", f"text {i}")
        await shop.discover()
        reporter = await shop.pull()
        assert reporter.groups == [4, 4, 2]
        assert len(shop.held()) == 10

    async def test_limit(self, shop):
        """A pull run takes as many as it was told and leaves the rest due."""
        shop.group = 4
        for i in range(10):
            shop.put(f"{i}.md", f"text {i}")
        await shop.discover()
        assert len((await shop.pull(limit=6)).reports) == 6
        assert len(await shop.state.list_due(utc_now(), 100)) == 4

    async def test_nothing_due(self, shop):
        """A run that finds nothing to do reports nothing and leaves no worker."""
        assert (await shop.pull()).reports == []
        assert await workers(shop) == []

    async def test_local_extractor(self, shop):
        """What the extractor finds is counted in the record and tied to the artifact."""
        shop.extractor = LocalExtractor()
        shop.put("a.md", "The ferry Aurora leaves Hamburg at noon. It carries 400 passengers to Oslo every day.")
        await shop.discover()
        await shop.pull()
        doc = await shop.doc("a.md")
        assert doc.n_entries > 0
        artifact = shop.artifacts.get_many([doc.artifact])[doc.artifact]
        assert len(artifact.entries) == doc.n_entries
        assert artifact.document_id == doc.document_id

    async def test_same_input_gives_the_same_bytes(self, shop, tmp_path):
        """Extracted again from nothing, a document gives the artifact of the same key, which is kept once."""
        shop.extractor = LocalExtractor()
        shop.put("a.md", "# T\n\nSome text about Hamburg.\n\n- one\n- two")
        await shop.discover()
        await shop.pull()
        first = (await shop.doc("a.md")).artifact
        await shop.work_on("a.md", force=True)
        assert (await shop.doc("a.md")).artifact == first
        assert sqlite3.connect(tmp_path / "artifacts.db").execute("SELECT key FROM artifacts").fetchall() == [(first,)]

    async def test_two_runs_share_the_work(self, shop):
        """Two workers that pull at once do each document once."""
        shop.group = 3
        for i in range(30):
            shop.put(f"{i}.md", f"text {i}")
        await shop.discover()
        one, two = await asyncio.gather(shop.pull(run_id="one"), shop.pull(run_id="two"))
        done = [r.result.filename for x in (one, two) for r in x.reports if r.result.status is Outcome.SUCCEEDED]
        assert sorted(done) == sorted(f"{i}.md" for i in range(30))
        assert await workers(shop) == []


class TestNothingTwice:
    async def test_touched_file_is_not_parsed(self, shop):
        """New times, same bytes: read and found unchanged, neither parsed nor written."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        before, parsed = await shop.doc("a.md"), shop.pool.n_parsed
        os.utime(shop.root / "a.md", (1, 1))
        assert (await shop.discover()).changed == [before.document_id]
        stored = (shop.folder / "s.duckdb").read_bytes()
        reporter = await shop.pull()
        assert reporter.outcomes == {"a.md": Outcome.UNCHANGED}
        assert shop.pool.n_parsed == parsed
        assert (shop.folder / "s.duckdb").read_bytes() == stored
        after = await shop.doc("a.md")
        assert (after.artifact, after.build.status, after.links["s"].state) == (
            before.artifact,
            Status.COMPLETED,
            LinkState.INGESTED,
        )
        assert (await shop.discover()).n_unchanged == 1

    async def test_changed_file_replaces_its_text(self, shop):
        """Other bytes are extracted, and the store holds the new text only."""
        shop.put("a.md", "the old text")
        await shop.discover()
        await shop.pull()
        shop.put("a.md", "quite another text")
        await shop.discover()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        assert shop.found("the old text") == "quite another text"

    async def test_changed_configuration_extracts_what_is_due(self, shop):
        """With another parser, chunker or extractor the same bytes are extracted anew."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        parsed = shop.pool.n_parsed
        shop.config_parts["chunker"] = "c2"
        os.utime(shop.root / "a.md", (1, 1))
        await shop.discover()
        await shop.pull()
        assert shop.pool.n_parsed == parsed + 1
        assert (await shop.doc("a.md")).extraction.parts["chunker"] == "c2"

    async def test_force_extracts_what_is_complete(self, shop):
        """Forced, a complete document is parsed again and reported as done."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        parsed = shop.pool.n_parsed
        report = (await shop.work_on("a.md", force=True)).of("a.md")
        assert shop.pool.n_parsed == parsed + 1
        assert (report.result.status, report.extracted, report.built) == (Outcome.SUCCEEDED, True, ("s",))

    async def test_a_store_added_later_is_filled_when_asked(self, shop):
        """A document is built into a store it was not due in if somebody names both, and not by itself."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        shop.stores["t"] = shop.duckdb("t")
        assert (await shop.pull()).outcomes == {}
        assert shop.held("t") == {}
        report = (await shop.work_on("a.md", named=True, stores=("t",))).of("a.md")
        assert (report.result.status, report.built) == (Outcome.SUCCEEDED, ("t",))
        assert list(shop.held("t")) == [shop.id_of("a.md")]
        assert (await shop.doc("a.md")).due_in == ("s", "t")

    async def test_force_fills_a_store_that_was_lost(self, shop):
        """Forced, a document stands in a store again whose data is gone, although its record says it is there."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        shop.duckdb("s").drop()
        await shop.work_on("a.md", named=True)
        assert shop.held() == {}
        await shop.work_on("a.md", force=True)
        assert list(shop.held()) == [shop.id_of("a.md")]

    async def test_named_and_complete_is_reported_again(self, shop):
        """Asked for by name, a complete document is told again and nothing is done to it."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        before, parsed = await shop.doc("a.md"), shop.pool.n_parsed
        named = (await shop.work_on("a.md", named=True)).of("a.md")
        assert (named.result.status, named.extracted, named.built) == (Outcome.UNCHANGED, True, ("s",))
        unnamed = (await shop.work_on("a.md")).of("a.md")
        assert (unnamed.result.status, unnamed.extracted, unnamed.built) == (Outcome.UNCHANGED, False, ())
        assert await shop.doc("a.md") == before
        assert shop.pool.n_parsed == parsed

    async def test_unknown_document(self, shop):
        """A name that no source ever listed fails and says what to do; no record appears."""
        worker, reporter = await shop.worker(), RecordedReports()
        await shop.engine(worker, reporter).work_on(["hand-added"])
        [report] = reporter.reports
        assert report.doc is None
        assert (report.result.status, report.result.reason) == (Outcome.FAILED, Reason.UNKNOWN_DOCUMENT)
        assert report.result.error
        assert await shop.state.get_status("hand-added") is None

    async def test_damaged_record(self, shop):
        """A due document whose record cannot be read fails alone and says what mends it; its record is left alone."""
        shop.put("a.md", "text")
        shop.put("b.md", "text")
        await shop.discover()
        seen = await shop.backend.read("document", shop.id_of("a.md"))
        damaged = Write(seen.key, b"{}", seen.stamp, seen.due_at, seen.label, seen.open)
        [written] = await shop.backend.compare_and_set("document", [damaged])
        worker, reporter = await shop.worker(), RecordedReports()
        await shop.engine(worker, reporter).pull(10)
        results = {report.result.document_id: report.result for report in reporter.reports}
        assert results[shop.id_of("b.md")].status is Outcome.SUCCEEDED
        failed = results[shop.id_of("a.md")]
        assert (failed.status, failed.reason) == (Outcome.FAILED, Reason.RECORD_DAMAGED)
        assert "verify --repair" in failed.reason.what_to_do
        assert (await shop.backend.read("document", seen.key)).stamp == written.stamp

    async def test_a_document_named_twice_is_done_once(self, shop):
        """Naming a document twice in one request is no error and no double work."""
        shop.put("a.md", "text")
        await shop.discover()
        reporter = await shop.work_on("a.md", "a.md")
        assert [report.result.status for report in reporter.reports] == [Outcome.SUCCEEDED]

    async def test_unwanted_is_left_alone(self, shop):
        """What the selection does not want is neither claimed nor changed."""
        shop.put("a.md", "text")
        await shop.discover()
        before = await shop.doc("a.md")
        assert (await shop.work_on("a.md", wants=lambda _: False)).outcomes == {"a.md": Outcome.BUSY}
        assert await shop.doc("a.md") == before
