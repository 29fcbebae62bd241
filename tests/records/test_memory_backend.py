"""The memory backend keeps the contract."""

import pytest

from resources.records.backend import BackendUnavailableError, RecordBackend
from resources.records.memory_backend import MemoryBackend
from tests.records.contract import RecordBackendContract


class LosingMemory(MemoryBackend):
    """Commits, then loses the reply."""

    raises = False

    async def _write(self, kind, writes):
        done = await super()._write(kind, writes)
        if self.raises:
            raise BackendUnavailableError(self.uri, "the line broke")
        return [False for _ in done]


class TestMemoryBackend(RecordBackendContract):
    @pytest.fixture
    def backend(self) -> RecordBackend:
        """An empty backend."""
        return MemoryBackend()

    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See RecordBackendContract."""
        losing = LosingMemory()
        losing._kinds, losing._lock, losing.raises = backend._kinds, backend._lock, raises
        return losing
