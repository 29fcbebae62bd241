"""Many processes on one table lose nothing of each other's and hold nothing twice."""

import asyncio
import multiprocessing

import pytest

from resources.document_state.document_state_store import RecordDocumentStateStore
from tests.document_state.documents import new
from tests.records.contract import KIND
from tests.records.dynamodb_process import claim_all, increment_many
from tests.records.dynamodb_tables import new_table

SPAWN = multiprocessing.get_context("spawn")
STARTED_WITHIN = 4


async def race(processes, start):
    """Let processes begin at once, and wait until they have ended well."""
    for process in processes:
        process.start()
    await asyncio.sleep(STARTED_WITHIN)
    start.set()
    for process in processes:
        await asyncio.to_thread(process.join, 300)
        assert process.exitcode == 0


class Races:
    N_CLAIMANTS = 16
    N_DOCUMENTS = 200
    N_ADDERS = 8
    ADDITIONS = 250

    async def test_additions_are_not_lost(self, backend):
        """Processes that add to one number lose none of each other's additions."""
        start = SPAWN.Event()
        place = backend._calls._location
        await race(
            [SPAWN.Process(target=increment_many, args=(place, start, self.ADDITIONS)) for _ in range(self.N_ADDERS)],
            start,
        )
        found = await backend.read(KIND, "n")
        assert int(found.value) == found.stamp.version == self.N_ADDERS * self.ADDITIONS

    async def test_each_document_is_claimed_once(self, backend):
        """Of many processes that claim the same documents at once, one holds each, and it is the one that won."""
        state = RecordDocumentStateStore(backend)
        ids = [f"d{i:03d}" for i in range(self.N_DOCUMENTS)]
        assert None not in await state.set_many([(new(key), None) for key in ids])
        start, won = SPAWN.Event(), SPAWN.Queue()
        place = backend._calls._location
        await race(
            [SPAWN.Process(target=claim_all, args=(place, start, f"w{i}", won)) for i in range(self.N_CLAIMANTS)],
            start,
        )
        results = [won.get(timeout=5) for _ in range(self.N_CLAIMANTS)]
        owners = [(key, worker) for worker, keys in results for key in keys]
        docs = await state.get_many(ids)
        assert sorted(owners) == sorted((key, doc.claim.worker_id) for key, doc in docs.items())
        assert {doc.version for doc in docs.values()} == {2}


class TestOnMoto(Races):
    N_CLAIMANTS = 4
    N_DOCUMENTS = 50
    N_ADDERS = 3
    ADDITIONS = 15

    @pytest.fixture
    async def backend(self, moto_url, table_prefix):
        """A backend on a new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield opened


@pytest.mark.servers
class TestOnDynamoDbLocal(Races):
    @pytest.fixture
    async def backend(self, dynamodb_local, table_prefix):
        """A backend on a new table."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield opened
