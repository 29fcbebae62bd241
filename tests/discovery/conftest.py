"""Discovery is tested in a folder, on each state store that needs nothing but this process."""

import pytest

from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from tests.discovery.pile import Pile


class DearMemory(MemoryBackend):
    """As a backend for which counting means reading all there is."""

    counts_cheaply = False


class DearSqlite(SqliteBackend):
    """The same, in a file."""

    counts_cheaply = False


@pytest.fixture(params=["memory", "sqlite"])
async def dear_pile(request, tmp_path):
    """An empty folder and a state that knows nothing and does not count cheaply."""
    backend = DearMemory() if request.param == "memory" else DearSqlite(tmp_path / "state.db")
    yield Pile(tmp_path, backend)
    await backend.close()


@pytest.fixture(params=["memory", "sqlite"])
async def pile(request, tmp_path):
    """An empty folder and a state that knows nothing."""
    backend = MemoryBackend() if request.param == "memory" else SqliteBackend(tmp_path / "state.db")
    yield Pile(tmp_path, backend)
    await backend.close()
