"""What the other processes of the DynamoDB tests do; they are spawned, so it must be importable."""

import asyncio

from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from tests.document_state.documents import NOW, claimed
from tests.records.contract import increment


def increment_many(place, start, times: int) -> None:
    """Begin at the same moment as the others, and add to one number."""
    start.wait()
    asyncio.run(increment(DynamoDbBackend(place), "n", times))


def claim_all(place, start, worker: str, won) -> None:
    """Begin at the same moment as the others, and claim whatever is due; tell which were won."""
    start.wait()

    async def go() -> list[str]:
        state = RecordDocumentStateStore(DynamoDbBackend(place))
        due = await state.list_due(NOW, 200)
        docs = [doc for doc in (await state.get_many(due)).values() if doc.claim is None]
        held = await state.set_many([(claimed(doc, worker=worker), doc) for doc in docs])
        return [doc.document_id for doc in held if doc is not None]

    won.put((worker, asyncio.run(go())))
