"""A process that claims and does documents which many others want as well; spawned, so it must be importable."""

import asyncio
from pathlib import Path

from resources.clock import utc_now
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Status
from resources.document_state.workers import Worker
from resources.records.record import Write
from resources.records.uri import open_backend
from tests.document_state.documents import built, claimed, extracted, ingested

DONE = "done by"  # a kind of record: the key is the worker's id, the value names what it did, a line each
AT_ONCE = 10


def claim_all(uri: str, together, document_ids: list[str]) -> None:
    """Claim what of the documents is free, a few at a time, do what was won, and write down what that was."""

    async def go() -> None:
        backend = open_backend(uri, Path("/"))
        state = RecordDocumentStateStore(backend)
        worker = await Worker.register(backend, "run", utc_now())
        done: list[str] = []
        together.wait()
        for start in range(0, len(document_ids), AT_ONCE):
            wanted = document_ids[start : start + AT_ONCE]
            await worker.hold(wanted)
            read = (await state.get_many(wanted)).values()
            free = [doc for doc in read if doc.claim is None and doc.extraction.status is Status.PENDING]
            won = await state.set_many([(claimed(doc, worker=worker.worker_id), doc) for doc in free])
            for doc in won:
                if doc is not None:
                    done.append(doc.document_id)
                    [published] = await state.set_many([(extracted(doc), doc)])
                    await state.set_many([(built(published, ingested(published)), published)])
        await backend.compare_and_set(DONE, [Write(worker.worker_id, "\n".join(done).encode(), None)])
        await worker.hold(())
        await worker.end()
        await backend.close()

    asyncio.run(go())
