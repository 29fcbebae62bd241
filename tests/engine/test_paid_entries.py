"""Entries that are paid for, against a scripted model: what is durable when they are given out."""

import pytest

from ingest_assets.engine.entry_finding import Chunked
from ingest_assets.engine.paid_entries import PaidEntries
from ingest_assets.engine.purse import Purse
from resources.artifact_store.artifact import Piece, Place, chunks_of
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.records.sqlite_backend import SqliteBackend
from tests.engine.workshop import RecordedReports

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


class TestPaidEntries:
    async def test_no_answer_is_used_before_it_is_journaled(self, model, journal, ledger):
        """When entries are given out, each answer they were made of is in the journal, and the ledger is settled."""
        extractor, gate = LlmExtractor("openai:gpt-4o-mini"), SpendGate(ledger, journal)

        def new_purse() -> Purse:
            return Purse(gate, journal, Ceilings(), "job", "worker", extractor.model)

        batch = [
            Chunked(str(number), "org", chunks_of(str(number), [Piece(text, Place(0, len(text)))]))
            for number, text in enumerate(TEXTS)
        ]
        findings = await PaidEntries(extractor, journal, new_purse, RecordedReports()).find(batch)
        await extractor.close()
        assert all(finding.entries for finding in findings)
        keys = {key for chunked in batch for key in extractor.chunk_keys("org", chunked.chunks)}
        assert set(await journal.find(keys)) == keys
        assert (await ledger.open_reservations(), model.n_paid) == ([], len(TEXTS))
