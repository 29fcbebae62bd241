"""The sweep takes every document out of a dead worker's hands, even while that one is waking up."""

from ingest_assets.runs.recovery import _release
from resources.clock import utc_now
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Status
from resources.document_state.process_identity import this_process
from resources.document_state.workers import WorkerRecord
from resources.records.memory_backend import MemoryBackend
from tests.document_state.documents import claimed, complete, extracted, new


class WakesUp(RecordDocumentStateStore):
    """A real state store in which the worker publishes once between the sweep's reading and its writing."""

    woken = False

    async def set_many(self, changes):
        """See DocumentStateStore."""
        if not self.woken:
            self.woken = True
            doc = await self.get_status("a")
            assert await super().set_many([(extracted(doc), doc)]) != [None]
        return await super().set_many(changes)


class Parts:
    """The part of the components that the sweep's release needs."""

    def __init__(self, state) -> None:
        self.state = state


async def test_worker_that_publishes_meanwhile():
    """A document whose record moves under the sweep is looked at again until nobody holds it."""
    backend = MemoryBackend()
    state = RecordDocumentStateStore(backend)
    docs = [claimed(new("a")), claimed(new("b")), complete("c"), claimed(new("d"), worker="other")]
    await state.set_many([(doc, None) for doc in docs])
    worker = WorkerRecord("w1", "run", this_process(), utc_now(), claimed=("a", "b", "c", "d", "unknown"))
    assert await _release(Parts(WakesUp(backend)), worker) == 2
    found = await state.get_many(["a", "b", "c", "d"])
    assert {key: doc.claim and doc.claim.worker_id for key, doc in found.items()} == {
        "a": None,
        "b": None,
        "c": None,
        "d": "other",
    }
    assert found["a"].extraction.status is Status.COMPLETED
    assert len(await state.list_due(utc_now(), 10)) == 2
