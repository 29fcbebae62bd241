"""What many workers at one state keep: subclass `ManyWorkersContract`, give it a URI that each of them can open."""

from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path

import pytest

from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Status
from resources.document_state.workers import WorkerWatch
from resources.records.uri import open_backend
from tests.document_state.claim_process import DONE, claim_all
from tests.document_state.documents import new
from tests.records.processes_contract import run_together


class ManyWorkersContract(ABC):
    N_PROCESSES = 16
    N_DOCUMENTS = 200
    SECONDS = 120.0

    @pytest.fixture
    @abstractmethod
    def uri(self, tmp_path) -> str:
        """Where nothing was written yet; a relative path in it counts from the root."""

    async def test_each_document_is_done_once(self, uri):
        """However many processes want the same documents at the same moment, each document is done by one of them."""
        ids = [f"d{i:03d}" for i in range(self.N_DOCUMENTS)]
        backend = open_backend(uri, Path("/"))
        state = RecordDocumentStateStore(backend)
        await state.set_many([(new(document_id), None) for document_id in ids])
        run_together(claim_all, self.N_PROCESSES, uri, ids, seconds=self.SECONDS)
        did = [record.value.decode().splitlines() async for record in backend.list_records(DONE)]
        assert len(did) == self.N_PROCESSES
        assert Counter(document_id for done in did for document_id in done) == Counter(ids)
        docs = list((await state.get_many(ids)).values())
        assert len(docs) == self.N_DOCUMENTS
        for doc in docs:
            assert (doc.claim, doc.build.status, doc.token, doc.version) == (None, Status.COMPLETED, 1, 4)
        assert await WorkerWatch(backend).all() == []
        await backend.close()
