"""A run that loses something in the middle: an artifact, its lease, its process."""

import asyncio
import os
import sqlite3
from datetime import timedelta

import pytest

from ingest_assets.engine.progress import Milestone
from ingest_assets.engine.selection import Selection
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.workers import LeaseLostError, WorkerWatch
from resources.extractor.none_extractor import NoneExtractor
from resources.records.memory_backend import MemoryBackend
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import Removal
from tests.engine.workshop import STAMP, Interrupted, RecordedReports, take_over, workers

POISON = b"%PDF-1.7\nnot really a PDF"


class TestLostArtifacts:
    @pytest.fixture(params=["DELETE FROM artifacts", "UPDATE artifacts SET body = x'00'"], ids=["gone", "damaged"])
    async def half_done(self, shop, request):
        """A document that is extracted, and that its store could not take, and whose artifact is lost or damaged."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.work_on("a.md", stores=())
        connection = sqlite3.connect(shop.folder / "artifacts.db")
        connection.execute(request.param)
        connection.commit()
        connection.close()
        return shop

    async def test_is_extracted_again(self, half_done):
        """A document to be built whose artifact is lost is extracted again and built."""
        parsed = half_done.pool.n_parsed
        assert (await half_done.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        assert half_done.pool.n_parsed == parsed + 1
        doc = await half_done.doc("a.md")
        assert doc.artifact in half_done.artifacts.get_many([doc.artifact])
        assert len(half_done.held()) == 1

    async def test_fails_like_any_extraction(self, half_done):
        """If it cannot be extracted again, that document fails, and its neighbours are done."""
        (half_done.root / "a.md").unlink()
        half_done.put("b.md", "other")
        [seen] = (await half_done.discover()).new
        doc = await half_done.doc("a.md")
        if doc.presence is not Presence.PRESENT:  # the listing saw it go; a run that began before did not
            await half_done.state.set_many([(transitions.content_changed(doc, "v", 1, doc.due_in, utc_now()), doc)])
        reporter = await half_done.pull()
        assert reporter.outcomes == {"a.md": Outcome.FAILED, "b.md": Outcome.SUCCEEDED}
        assert seen in half_done.held()

    async def test_vanished_file_of_a_lost_artifact(self, half_done):
        """A document to be built whose artifact and file are both gone fails, and stops nobody."""
        (half_done.root / "a.md").unlink()
        reporter = await half_done.pull()
        assert reporter.results["a.md"].reason is Reason.VANISHED
        assert (await half_done.doc("a.md")).claim is None

    async def test_touched_file_of_a_lost_artifact(self, half_done):
        """An unchanged document that a store lacks is extracted again where its artifact is lost."""
        os.utime(half_done.root / "a.md", (1, 1))
        await half_done.discover()
        assert (await half_done.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        assert len(half_done.held()) == 1


class TakenOverBeforePublish(RecordDocumentStateStore):
    """A real state store in which a sweep and another worker come between the claim and the next write."""

    def __init__(self, shop, key, at_write) -> None:
        super().__init__(shop.backend)
        self._shop, self._key, self._at_write, self._n = shop, key, at_write, 0

    async def set_many(self, changes):
        """See DocumentStateStore."""
        ours = [new for new, _ in changes if new.document_id == self._shop.id_of(self._key)]
        if ours:
            self._n += 1
            if self._n == self._at_write:
                doc = await self.get_status(ours[0].document_id)
                if doc.claim is None:
                    await super().set_many([(transitions.claimed(doc, "other", "r", utc_now(), extract=True), doc)])
                else:
                    await take_over(Plain(self._shop), doc)
        return await super().set_many(changes)


class Plain:
    """A shop whose state is the plain store."""

    def __init__(self, shop) -> None:
        self.state = RecordDocumentStateStore(shop.backend)


class DeclaredDeadMeanwhile(NoneExtractor):
    """An extractor during whose work a watcher declares every worker dead."""

    def __init__(self, shop) -> None:
        self._shop = shop

    async def extract(self, document_id, chunks):
        """See Extractor."""
        assert await WorkerWatch(self._shop.backend, timedelta(0)).bury()
        return await super().extract(document_id, chunks)


class RunsAhead(DuckDBStore):
    """A real store in which something takes a document under a token 100 larger before every touch."""

    def __init__(self, slug, path, stamp, document_id) -> None:
        super().__init__(slug, path, stamp)
        self._id, self._token = document_id, 0

    def _run_ahead(self):
        self._token += 100
        DuckDBStore.remove(self, [Removal(self._id, self._token)])

    def write(self, builds):
        """See Store."""
        self._run_ahead()
        return super().write(builds)

    def remove(self, removals):
        """See Store."""
        self._run_ahead()
        return super().remove(removals)


class RemembersWrites(DuckDBStore):
    """A real store that remembers with how many vectors each write came."""

    def write(self, builds):
        """See Store."""
        self.n_vectors = [*getattr(self, "n_vectors", []), sum(len(build.vectors) for build in builds)]
        return super().write(builds)


class TestTakenOver:
    @pytest.mark.parametrize("at_write", [1, 2, 3])
    async def test_conflict_at_each_write(self, shop, at_write):
        """Taken over before claim, extraction or build is published: the other's record stands, and we report busy."""
        shop.put("a.md", "text")
        shop.put("b.md", "other")
        await shop.discover()
        shop.state = TakenOverBeforePublish(shop, "a.md", at_write)
        reporter = await shop.pull()
        assert reporter.outcomes == {"a.md": Outcome.BUSY, "b.md": Outcome.SUCCEEDED}
        doc = await shop.doc("a.md")
        assert (doc.claim.worker_id, doc.extraction.status) == ("other", Status.IN_PROGRESS)
        assert doc.links == {}
        assert await workers(shop) == []

    async def test_worker_declared_dead_publishes_nothing(self, shop):
        """A worker that is dead to the others stops with LeaseLostError; what it held is to be had again."""
        shop.put("a.md", "text")
        await shop.discover()
        worker, reporter = await shop.worker(), RecordedReports()

        shop.extractor = DeclaredDeadMeanwhile(shop)
        worker._lease = -worker._lease  # as if it had slept past its lease
        with pytest.raises(LeaseLostError):
            await shop.engine(worker, reporter).pull(10)
        assert reporter.reports == []
        assert shop.held() == {}
        doc = await shop.doc("a.md")
        assert (doc.claim, doc.links) == (None, {})
        assert await shop.state.list_due(utc_now(), 10) == [doc.document_id]

    async def test_content_that_came_back_after_a_crash(self, shop):
        """A run died after it wrote other content and before it said so: the old content, come back, is written."""
        shop.put("a.md", "the first text")
        await shop.discover()
        await shop.pull()
        shop.put("a.md", "another text")
        await shop.discover()
        plain, shop.state = shop.state, TakenOverBeforePublish(shop, "a.md", 3)
        await shop.pull()
        assert shop.found("the first text") == "another text"
        shop.state = plain
        doc = await shop.doc("a.md")
        await shop.state.set_many([(transitions.released(doc, utc_now()), doc)])
        shop.put("a.md", "the first text")
        await shop.discover()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        assert shop.found("the first text") == "the first text"

    async def test_store_fences_a_late_writer(self, shop):
        """A document that a later claim has built is not written by the earlier one, and is reported as busy."""
        shop.put("a.md", "text")
        await shop.discover()
        shop.duckdb("s").remove([Removal(shop.id_of("a.md"), 9)])
        shop.state = TakenOverBeforePublish(shop, "a.md", 3)
        assert (await shop.pull()).outcomes == {"a.md": Outcome.BUSY}
        assert (await shop.doc("a.md")).claim.worker_id == "other"
        assert shop.found("text") is None

    async def test_store_ahead_of_a_restored_state(self, shop):
        """If the state was lost and the store remembers larger tokens, documents catch up and are never stuck."""
        shop.put("a.md", "text")
        await shop.discover()
        shop.duckdb("s").remove([Removal(shop.id_of("a.md"), 30)])
        assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
        doc = await shop.doc("a.md")
        assert (doc.claim, doc.build.status, doc.token) == (None, Status.COMPLETED, 31)
        assert shop.found("text") == "text"

    async def test_state_lost_after_many_runs(self, shop):
        """A fresh state beside two stores that many runs wrote: one run does every document, and none is busy."""
        shop.stores["t"] = shop.duckdb("t")
        names = [f"{i}.md" for i in range(12)]
        for name in names:
            shop.put(name, f"text of {name}")
        await shop.discover()
        for _ in range(6):
            await shop.work_on(*names, force=True)
        await shop.work_on(*names[:6], force=True, stores=("t",))
        shop.put("7.md", "other")
        shop.backend = MemoryBackend()
        shop.state = RecordDocumentStateStore(shop.backend)
        await shop.discover()
        reporter = await shop.pull()
        assert reporter.outcomes == dict.fromkeys(names, Outcome.SUCCEEDED)
        assert shop.found("other") == shop.found("other", "t") == "other"
        assert await shop.state.list_due(utc_now(), 100) == []
        assert (await shop.work_on(*names, force=True)).outcomes == dict.fromkeys(names, Outcome.SUCCEEDED)

    async def test_removal_from_a_store_ahead(self, shop):
        """A document that is gone from its source is removed in one run from a store that is ahead."""
        shop.put("a.md", "text")
        shop.put("b.md", "other")
        await shop.discover()
        await shop.pull()
        shop.duckdb("s").remove([Removal(shop.id_of("a.md"), 40)])
        (shop.root / "a.md").unlink()
        await shop.discover()
        assert (await shop.pull()).outcomes == {"a.md": Outcome.REMOVED}
        doc = await shop.doc("a.md")
        assert (doc.presence, doc.claim, doc.token) == (Presence.DELETED, None, 41)

    async def test_removal_that_was_taken_over(self, shop):
        """A removal that a later claim fences is the other's: it is busy, and nothing of it is published."""
        shop.put("a.md", "text")
        shop.put("b.md", "other")
        await shop.discover()
        await shop.pull()
        shop.duckdb("s").remove([Removal(shop.id_of("a.md"), 40)])
        (shop.root / "a.md").unlink()
        await shop.discover()
        shop.state = TakenOverBeforePublish(shop, "a.md", 2)
        assert (await shop.pull()).outcomes == {"a.md": Outcome.BUSY}
        doc = await shop.doc("a.md")
        assert (doc.claim.worker_id, doc.presence) == ("other", Presence.VANISHED)

    @pytest.mark.parametrize("gone", [False, True])
    async def test_store_that_fences_again_and_again(self, shop, gone):
        """What a store fences a second time is given back, is called pending, and its token is beyond the store's."""
        shop.put("a.md", "text")
        shop.put("b.md", "other")
        await shop.discover()
        if gone:
            await shop.pull()
            (shop.root / "a.md").unlink()
            await shop.discover()
        plain, shop.stores["s"] = shop.stores["s"], RunsAhead("s", shop.folder / "s.duckdb", STAMP, shop.id_of("a.md"))
        assert (await shop.pull()).outcomes["a.md"] is Outcome.PENDING
        doc = await shop.doc("a.md")
        assert (doc.claim, doc.token) == (None, 201)
        shop.stores["s"] = plain
        done = Outcome.REMOVED if gone else Outcome.SUCCEEDED
        assert (await shop.pull()).outcomes["a.md"] is done

    async def test_held_chunks_are_not_embedded_again(self, shop):
        """Whom the store fenced, it is asked what it holds of them before they are written once more."""
        shop.put("a.md", "text")
        await shop.discover()
        for _ in range(2):
            await shop.work_on("a.md", force=True)
        shop.backend = MemoryBackend()
        shop.state = RecordDocumentStateStore(shop.backend)
        await shop.discover()
        shop.stores["s"] = seen = RemembersWrites("s", shop.folder / "s.duckdb", STAMP)
        await shop.pull()
        assert seen.n_vectors == [1, 0]


class TestInterrupted:
    @pytest.mark.parametrize("error", [Interrupted, asyncio.CancelledError, RuntimeError])
    @pytest.mark.parametrize("at", [Milestone.EXTRACTED, Milestone.DONE, "group_done"])
    async def test_all_claims_are_released(self, shop, error, at):
        """Whatever ends a run, nothing stays claimed, and the next run does what is left."""
        shop.group = 3
        shop.put("0.pdf", POISON)
        for i in range(1, 12):
            shop.put(f"{i}.md", f"text {i}")
        await shop.discover()
        worker = await shop.worker()
        with pytest.raises(error):
            await shop.engine(worker, RecordedReports(error(), at)).pull(100)
        docs = [doc async for doc in shop.state.iter_statuses()]
        assert [doc.claim for doc in docs] == [None] * 12
        assert Status.IN_PROGRESS not in {
            status for doc in docs for status in (doc.extraction.status, doc.build.status)
        }
        await shop.pull()
        assert len(shop.held()) == 11
        assert await shop.state.list_due(utc_now(), 100) == []

    async def test_released_costs_no_attempt(self, shop):
        """A run that is interrupted does not bring its documents nearer to quarantine."""
        shop.put("a.md", "text")
        await shop.discover()
        await shop.pull()
        worker = await shop.worker()
        with pytest.raises(Interrupted):
            await shop.engine(
                worker, RecordedReports(Interrupted(), Milestone.DONE), Selection(("s",), force=True)
            ).work_on([shop.id_of("a.md")])
        doc = await shop.doc("a.md")
        assert (doc.extraction.attempts, doc.build.attempts, doc.claim) == (0, 0, None)
