"""What goes wrong with one document, or in one part, costs nothing else; and it is told."""

import msgspec

from resources.clock import utc_now
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import LinkState, Status
from resources.document_state.reasons import Reason
from tests.engine.faulty_parts import ChokesOn, ChokingExtractor, Unavailable
from tests.engine.workshop import STAMP

POISON = b"%PDF-1.7\nnot really a PDF"


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
