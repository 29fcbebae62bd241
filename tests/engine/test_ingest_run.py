"""The engine: claim, extract, build, publish, report, with every part real."""

import asyncio
import os
import sqlite3

import msgspec
import pytest

from resources.clock import utc_now
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import LinkState, Presence, Status
from resources.document_state.reasons import Reason
from resources.extractor.local_extractor import LocalExtractor
from resources.extractor.none_extractor import NoneExtractor
from resources.records.record import Write
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import StoreUnavailableError
from tests.engine.workshop import STAMP, RecordedReports, workers

POISON = b"%PDF-1.7\nnot really a PDF"


class Unavailable(DuckDBStore):
    """A real store whose server does not answer."""

    calls = 0

    def write(self, builds):
        """See Store."""
        self.calls += 1
        raise StoreUnavailableError(self.slug, "no answer")

    def remove(self, removals):
        """See Store."""
        self.calls += 1
        raise StoreUnavailableError(self.slug, "no answer")


class ChokesOn(DuckDBStore):
    """A real store with a fault of its own at one document, or whenever it shall remove."""

    culprit = ""

    def write(self, builds):
        """See Store."""
        if any(self.culprit in build.source_uri for build in builds):
            raise ZeroDivisionError("a fault of the store")
        return super().write(builds)

    def remove(self, removals):
        """See Store."""
        raise ZeroDivisionError("a fault of the store")


class ChokingExtractor(NoneExtractor):
    """An extractor with a fault of its own at one text."""

    async def extract(self, document_id, chunks):
        """See Extractor."""
        if "choke" in chunks[0].text:
            raise ZeroDivisionError("a fault of the extractor")
        return await super().extract(document_id, chunks)


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
        assert len(reporter.outcomes) == reporter.n_done == 25
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


class TestFailures:
    async def test_one_poison_among_many(self, shop):
        """A document that cannot be read fails alone, with its reason; its neighbours are done."""
        for i in range(9):
            shop.put(f"{i}.md", f"text {i}")
        shop.put("poison.pdf", POISON)
        shop.put("empty.md", b"")
        await shop.discover()
        reporter = await shop.pull()
        failed = {key for key, outcome in reporter.outcomes.items() if outcome is Outcome.FAILED}
        assert failed == {"poison.pdf", "empty.md"}
        assert len(shop.held()) == 9
        doc = await shop.doc("poison.pdf")
        assert (doc.extraction.status, doc.extraction.reason, doc.build.status) == (
            Status.FAILED,
            Reason.MALFORMED,
            Status.PENDING,
        )
        assert (await shop.doc("empty.md")).extraction.reason is Reason.EMPTY_FILE
        assert reporter.results["poison.pdf"].reason is Reason.MALFORMED
        assert reporter.results["poison.pdf"].error == doc.extraction.error != ""
        assert (await shop.pull()).reports == []

    async def test_unsupported_type_is_skipped(self, shop):
        """A type that no parser reads is skipped, not failed."""
        shop.put("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
        await shop.discover()
        reporter = await shop.pull()
        assert reporter.outcomes == {"a.png": Outcome.SKIPPED}
        doc = await shop.doc("a.png")
        assert (doc.extraction.status, doc.build.status) == (Status.SKIPPED, Status.SKIPPED)
        assert doc.extraction.reason is Reason.UNSUPPORTED_TYPE
        assert await shop.state.list_due(utc_now(), 10) == []

    async def test_file_gone_before_it_is_read(self, shop):
        """A file that went after it was listed fails for now, and its record says so."""
        shop.put("a.md", "text")
        await shop.discover()
        (shop.root / "a.md").unlink()
        assert (await shop.pull()).results["a.md"].reason is Reason.VANISHED
        assert (await shop.doc("a.md")).extraction.next_attempt_at > utc_now()

    async def test_too_large(self, shop):
        """A file over the limit fails with the limit's name and is not read."""
        shop.put("a.md", b"x" * (10**6 + 1))
        await shop.discover()
        result = (await shop.pull()).results["a.md"]
        assert result.reason is Reason.TOO_LARGE
        assert "limits.file_bytes" in result.error
        assert shop.pool.n_parsed == 0

    async def test_unavailable_store_fails_only_its_link(self, shop):
        """A store that does not answer fails its own link; the other store has the document."""
        down = shop.stores["down"] = Unavailable("down", shop.folder / "down.duckdb", STAMP)
        for i in range(3):
            shop.put(f"{i}.md", f"text {i}")
        await shop.discover()
        reporter = await shop.pull()
        report = reporter.of("0.md")
        assert (report.result.status, report.built, report.failed) == (Outcome.FAILED, ("s",), ("down",))
        assert report.result.reason is Reason.STORE_UNAVAILABLE
        doc = await shop.doc("0.md")
        assert (doc.links["s"].state, doc.links["down"].state) == (LinkState.INGESTED, LinkState.FAILED)
        assert (doc.extraction.status, doc.build.status) == (Status.COMPLETED, Status.FAILED)
        assert doc.build.next_attempt_at > utc_now()
        assert down.calls == 1
        shop.stores["down"] = shop.duckdb("down")
        parsed = shop.pool.n_parsed
        reporter = await shop.work_on("0.md", "1.md", "2.md")
        assert set(reporter.outcomes.values()) == {Outcome.SUCCEEDED}
        assert shop.pool.n_parsed == parsed
        assert len(shop.held("down")) == 3
        assert (await shop.doc("0.md")).build.attempts == 0

    async def test_fault_in_a_store_costs_one_document(self, shop, caplog):
        """An unexpected exception in a store is narrowed down to the document that brings it about."""
        store = shop.stores["s"] = ChokesOn("s", shop.folder / "s.duckdb", STAMP)
        store.culprit = "5.md"
        for i in range(10):
            shop.put(f"{i}.md", f"text {i}")
        await shop.discover()
        reporter = await shop.pull()
        assert [key for key, outcome in reporter.outcomes.items() if outcome is Outcome.FAILED] == ["5.md"]
        assert reporter.results["5.md"].reason is Reason.INTERNAL_ERROR
        assert "a fault of the store" in reporter.results["5.md"].error
        assert len(shop.held()) == 9
        assert shop.id_of("5.md") in caplog.text

    async def test_fault_in_the_extractor_costs_one_document(self, shop, caplog):
        """An unexpected exception in the extractor fails its document and no other."""
        shop.extractor = ChokingExtractor()
        for i in range(5):
            shop.put(f"{i}.md", "choke" if i == 2 else f"text {i}")
        await shop.discover()
        reporter = await shop.pull()
        assert [key for key, outcome in reporter.outcomes.items() if outcome is Outcome.FAILED] == ["2.md"]
        assert reporter.results["2.md"].reason is Reason.INTERNAL_ERROR
        assert shop.id_of("2.md") in caplog.text

    async def test_source_that_is_no_longer_configured(self, shop):
        """A document of a source nobody knows any more fails, and the message lists those that are known."""
        shop.put("a.md", "text")
        await shop.discover()
        doc = await shop.doc("a.md")
        await shop.state.set_many([(msgspec.structs.replace(doc, source="old"), doc)])
        result = (await shop.pull()).results["a.md"]
        assert result.reason is Reason.SOURCE_UNAVAILABLE
        assert "Known: docs" in result.error


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
