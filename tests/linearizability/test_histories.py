"""Each backend, through the document state store, answers many clients as one record at a time would."""

import pytest

from resources.records.backend import RecordBackend
from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from tests.linearizability.contract import LinearizabilityContract


class TestOnMemory(LinearizabilityContract):
    @pytest.fixture
    def backend(self) -> RecordBackend:
        """An empty backend."""
        return MemoryBackend()


class TestOnSqlite(LinearizabilityContract):
    @pytest.fixture
    async def backend(self, tmp_path) -> RecordBackend:
        """A backend on a new file."""
        opened = SqliteBackend(tmp_path / "state.db")
        yield opened
        await opened.close()

    @pytest.fixture
    async def openings(self, backend):
        """Two processes' worth of connections to the file."""
        again = SqliteBackend(backend.path)
        yield [backend, again]
        await again.close()
