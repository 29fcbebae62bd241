"""One pool of parsers for all tests, and a workshop for each."""

import pytest

from ingest_assets.parsing import Chunking, ParseLimits
from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from tests.engine.workshop import CountingPool, Workshop


@pytest.fixture(scope="session")
def pool():
    with CountingPool(1, ParseLimits(), Chunking()) as opened:
        yield opened


@pytest.fixture
def records():
    """Where the state is; a test class may say otherwise."""
    return "sqlite"


@pytest.fixture
async def shop(records, tmp_path, pool):
    backend = MemoryBackend() if records == "memory" else SqliteBackend(tmp_path / "state.db")
    pool.n_parsed = 0
    yield Workshop(tmp_path, backend, pool)
    await backend.close()
