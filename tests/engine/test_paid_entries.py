"""Entries that are paid for, against a scripted model: what is durable when they are given out."""

import pytest

from ingest_assets.engine.entry_finding import Chunked
from ingest_assets.engine.paid_entries import PaidEntries
from ingest_assets.engine.progress import Milestone
from ingest_assets.engine.purse import Purse
from resources.artifact_store.artifact import Piece, Place, chunks_of
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.clock import utc_now
from resources.document_state.patience import Patience
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.records.sqlite_backend import SqliteBackend
from tests.engine.workshop import RecordedReports
from tests.servers.scripted_model import DROP, Step
from tests.spending.spending import NO_PATIENCE, reservation

TEXTS = ("Grace Hopper wrote a compiler.", "Ada Lovelace wrote notes.")


@pytest.fixture
async def journal(tmp_path):
    opened = SqliteJournal(tmp_path / "paid.db")
    yield opened
    await opened.shut()


@pytest.fixture
async def ledger(tmp_path):
    backend = SqliteBackend(tmp_path / "state.db")
    yield SpendLedger(backend)
    await backend.close()


def chunked(number: int, text: str) -> Chunked:
    """A document of one chunk."""
    return Chunked(str(number), "org", chunks_of(str(number), [Piece(text, Place(0, len(text)))]))


class TestPaidEntries:
    async def test_no_answer_is_used_before_it_is_journaled(self, model, journal, ledger):
        """When entries are given out, each answer they were made of is in the journal, and the ledger is settled."""
        extractor, gate = LlmExtractor("openai:gpt-4o-mini"), SpendGate(ledger, journal)

        def new_purse() -> Purse:
            return Purse(gate, journal, Ceilings(), NO_PATIENCE, "job", "worker", extractor.model)

        batch = [chunked(number, text) for number, text in enumerate(TEXTS)]
        reporter = RecordedReports()
        findings = await PaidEntries(extractor, journal, new_purse, reporter).find(batch)
        await extractor.close()
        assert all(finding.entries for finding in findings)
        assert reporter.reached == [Milestone.EXTRACTED] * len(TEXTS)
        keys = {key for each in batch for key in extractor.chunk_keys("org", each.chunks)}
        assert set(await journal.find(keys)) == keys
        assert (await ledger.open_reservations(), model.n_paid) == ([], len(TEXTS))

    async def test_repetition_waits_for_others_when_nothing_is_held(self, model, journal, ledger):
        """A lost reply has used up its reservation, and others hold the rest until somebody waits for them."""
        extractor, gate = LlmExtractor("openai:gpt-4o-mini"), SpendGate(ledger, journal)
        document, reporter = chunked(0, TEXTS[0]), RecordedReports()
        [planned] = extractor.plan("org", document.chunks, set())
        worst = extractor.micro_usd(planned.worst_case)
        ceilings = Ceilings(per_day_micro_usd=2 * worst)
        await gate.admit(reservation("theirs", worst), ceilings, utc_now())
        held: list[str] = []

        async def others_end() -> None:
            held.extend(each.reservation_id for each in await ledger.open_reservations())
            await gate.settle("theirs")

        patience = Patience(30, others_end, 1, lambda: None)

        def new_purse() -> Purse:
            return Purse(gate, journal, ceilings, patience, "job", "worker", extractor.model)

        model.script(Step(DROP, times=1))
        [finding] = await PaidEntries(extractor, journal, new_purse, reporter).find([document])
        await extractor.close()
        assert finding.entries
        assert (held, model.n_paid) == (["theirs"], 2)
        assert await ledger.open_reservations() == []
