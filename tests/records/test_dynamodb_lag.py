"""Indexes that lag behind the table, as real ones do and no emulator: they cost a look, and lose or double nothing."""

import asyncio

import pytest

from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.reasons import Reason
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from tests.document_state.documents import NOW, SECOND, claimed, new
from tests.records.dynamodb_tables import new_table

N_DOCUMENTS = 40
GROUP = 10


class LaggingDynamoDb(DynamoDbBackend):
    """Its indexes answer as they stood `lag` calls of theirs ago, at first with nothing."""

    def __init__(self, place, lag):
        super().__init__(place)
        self._due = [[]] * lag
        self._open = [[]] * lag
        self.catches_up = False

    async def _list_due(self, kind, now, limit, after):
        self._due.append(await super()._list_due(kind, now, 10_000, None))
        known = self._due[-1] if self.catches_up else self._due.pop(0)
        return [due for due in known if due.due_at <= now and (after is None or due > after)][:limit]

    async def _list_open(self, kind):
        self._open.append(await super()._list_open(kind))
        return self._open[-1] if self.catches_up else self._open.pop(0)


@pytest.fixture
async def backend(moto_url, table_prefix):
    async with new_table(moto_url, table_prefix) as opened:
        yield opened


@pytest.fixture
async def lagging(backend):
    opened = []

    def open_one(lag):
        opened.append(LaggingDynamoDb(backend._calls._location, lag))
        return opened[-1]

    yield open_one
    for each in opened:
        await each.close()


async def work(backend, worker, done):
    """List, read, claim and complete until nothing is listed often enough; what this worker did."""
    state = RecordDocumentStateStore(backend)
    idle = 0
    while idle < 5:
        listed = await state.list_due(NOW, GROUP)
        docs = [doc for doc in (await state.get_many(listed)).values() if doc.claim is None and transitions.due_at(doc)]
        held = [doc for doc in await state.set_many([(claimed(doc, worker=worker), doc) for doc in docs]) if doc]
        idle = 0 if held else idle + 1
        skip = Reason.UNSUPPORTED_TYPE
        finished = await state.set_many([(transitions.extraction_skipped(doc, skip, "", NOW), doc) for doc in held])
        assert None not in finished
        done += [doc.document_id for doc in held]


@pytest.mark.parametrize("lag", [1, 3])
async def test_nothing_is_lost_or_done_twice(backend, lagging, lag):
    """Workers whose lists are old claim each document once between them, and leave none behind."""
    state = RecordDocumentStateStore(backend)
    ids = [f"d{i:02d}" for i in range(N_DOCUMENTS)]
    assert None not in await state.set_many([(new(key), None) for key in ids])
    done = []
    await asyncio.gather(*(work(lagging(lag), f"w{i}", done) for i in range(3)))
    assert sorted(done) == ids
    assert await state.list_due(NOW + 3600 * SECOND, 100) == []
    assert {doc.claim for doc in (await state.get_many(ids)).values()} == {None}


async def test_what_is_not_listed_yet_comes_later(backend, lagging):
    """A new document that the index does not know is not lost: it is listed once the index has caught up."""
    state = RecordDocumentStateStore(lagging(2))
    await state.set_status("a", new())
    found = [await state.list_due(NOW, 5) for _ in range(3)]
    assert found == [[], [], ["a"]]


async def test_an_old_entry_is_refused_by_the_claim(backend, lagging):
    """A document the index still calls due, and that another holds, is not claimed from what was read before."""
    slow = lagging(1)
    state = RecordDocumentStateStore(slow)
    await state.set_status("a", new())
    await state.list_due(NOW, 5)
    read = await state.get_status("a")
    assert await RecordDocumentStateStore(backend).set_status("a", claimed(read, worker="other"), expected=read)
    assert await state.list_due(NOW, 5) == ["a"]
    assert not await state.set_status("a", claimed(read, worker="late"), expected=read)
    assert (await state.get_status("a")).claim.worker_id == "other"


async def test_open_is_a_hint_too(backend, lagging):
    """A claim the index of open records does not know yet is found when it has caught up, with its new label."""
    slow = lagging(1)
    state = RecordDocumentStateStore(slow)
    await state.set_status("a", new())
    read = await state.get_status("a")
    await state.set_status("a", claimed(read), expected=read)
    assert await state.list_open(lambda label: label.claimed) == []
    assert await state.list_open(lambda label: label.claimed) == ["a"]
