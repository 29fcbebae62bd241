"""The document state store keeps its contract on every backend."""

import pytest

from resources.records.backend import RecordBackend
from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.contract import DocumentStateStoreContract


class TestOnMemory(DocumentStateStoreContract):
    @pytest.fixture
    def backend(self) -> RecordBackend:
        """An empty backend."""
        return MemoryBackend()


class TestOnSqlite(DocumentStateStoreContract):
    @pytest.fixture
    async def backend(self, tmp_path) -> RecordBackend:
        """A backend on a new file."""
        opened = SqliteBackend(tmp_path / "state.db")
        yield opened
        await opened.close()
