"""What is asked of DynamoDB is in proportion to what it answers, whatever else the table holds."""

from collections import Counter

import pytest

from resources.document_state.document_state_store import KIND as DOCUMENT
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.label import label_of
from resources.document_state.transitions import due_at, is_open
from resources.records.dynamodb.item import BUCKETS, item_of
from resources.records.record import Stamp, Write, fresh_write_id
from tests.document_state.documents import claimed, complete, new
from tests.records.contract import KIND, NOW, put
from tests.records.dynamodb_tables import new_table
from tests.servers.clients import dynamodb_client

N_COMPLETE = 2_000


@pytest.fixture
async def backend(moto_url, table_prefix):
    async with new_table(moto_url, table_prefix) as opened:
        yield opened


class Requests:
    """What a backend asks and is given while the `with` block runs; what boto3 sends again counts once."""

    def __init__(self, backend):
        self._events = backend._calls._client().meta.events
        self.operations = Counter()
        self.n_items = 0

    def __enter__(self):
        self._events.register("before-call.dynamodb", self._asked)
        self._events.register("after-call.dynamodb", self._given)
        return self

    def __exit__(self, *_):
        self._events.unregister("before-call.dynamodb", self._asked)
        self._events.unregister("after-call.dynamodb", self._given)

    def _asked(self, model, **_):
        self.operations[model.name] += 1

    def _given(self, parsed, **_):
        self.n_items += parsed.get("ScannedCount", 0)


async def costs_of_a_claim(backend, n):
    """The requests and items read of listing, claiming and completing `n` due documents and listing the open ones."""
    state = RecordDocumentStateStore(backend)
    assert None not in await state.set_many([(new(f"due{i}"), None) for i in range(n)])
    with Requests(backend) as listing:
        due = await state.list_due(NOW, n)
    with Requests(backend) as claim:
        docs = (await state.get_many(due)).values()
        held = await state.set_many([(claimed(doc), doc) for doc in docs])
    with Requests(backend) as looking:
        found = await state.list_open(lambda label: label.claimed)
    assert len(due) == len(held) == len(found) == n
    assert None not in held
    return [(dict(requests.operations), requests.n_items) for requests in (listing, claim, looking)]


def put_around_the_backend(client, table, writes):
    """Put items in batches, which no condition allows, but which are quick."""
    puts = [{"PutRequest": {"Item": item_of(DOCUMENT, write, Stamp.after(None, fresh_write_id()))}} for write in writes]
    for start in range(0, len(puts), 25):
        assert not client.batch_write_item(RequestItems={table: puts[start : start + 25]})["UnprocessedItems"]


async def test_a_table_of_complete_documents_costs_nothing(backend, moto_url, table_prefix):
    """Listing what is due, claiming it and listing what is open ask the same beside 2,000 complete documents."""
    async with new_table(moto_url, f"{table_prefix}empty-") as empty:
        alone = await costs_of_a_claim(empty, 40)
    doc = complete()
    writes = [
        Write(f"complete{i}", b"x" * 500, None, due_at(doc), label_of(doc), is_open(doc)) for i in range(N_COMPLETE)
    ]
    put_around_the_backend(dynamodb_client(moto_url), f"{table_prefix}records", writes)
    beside = await costs_of_a_claim(backend, 40)
    assert beside == alone
    assert beside == [
        ({"Query": BUCKETS}, 40),
        ({"BatchGetItem": 1, "PutItem": 40}, 0),
        ({"Query": BUCKETS}, 40),
    ]
    assert sum((await backend.count_labels(DOCUMENT)).values()) == N_COMPLETE + 40


async def test_a_short_list_reads_little_of_a_long_one(backend):
    """A hundred of eight hundred due records cost sixteen requests and a few items more than are given."""
    await backend.compare_and_set(KIND, [Write(f"k{i}", b"", None, NOW) for i in range(800)])
    with Requests(backend) as requests:
        assert len(await backend.list_due(KIND, NOW, 100)) == 100
    assert requests.operations == {"Query": BUCKETS}
    assert requests.n_items < 300


async def test_nothing_is_asked_for_nothing(backend):
    """A list of no length asks for none."""
    await put(backend, "a", due_at=NOW)
    with Requests(backend) as requests:
        assert await backend.list_due(KIND, NOW, 0) == await backend.list_due_together(KIND, NOW, 0, "me") == []
    assert not requests.operations


async def test_askers_stay_apart(backend):
    """Sixteen askers that each take a part of what is due rarely get the same, at a request or a few each."""
    await backend.compare_and_set(KIND, [Write(f"k{i}", b"", None, NOW) for i in range(640)])
    with Requests(backend) as requests:
        taken = [await backend.list_due_together(KIND, NOW, 20, f"worker {i}") for i in range(16)]
    assert {len(keys) for keys in taken} == {20}
    distinct = len({key for keys in taken for key in keys})
    assert distinct > 2 * 20
    assert distinct == 20 * len({frozenset(keys) for keys in taken})
    assert requests.operations["Query"] == 16


async def test_an_asker_gets_all_there_is(backend):
    """What its own bucket lacks comes out of the others."""
    keys = {f"k{i}" for i in range(100)}
    await backend.compare_and_set(KIND, [Write(key, b"", None, NOW) for key in keys])
    assert set(await backend.list_due_together(KIND, NOW, 100, "me")) == keys
    with Requests(backend) as requests:
        assert len(await backend.list_due_together(KIND, NOW, 15, "me")) == 15
    assert requests.operations["Query"] == 4


async def test_pages_of_a_listing_overlap_little(backend):
    """A listing of all records reads little more than there are, though each page looks into every bucket."""
    await backend.compare_and_set(KIND, [Write(f"k{i}", b"", None) for i in range(600)])
    with Requests(backend) as requests:
        assert len([record async for record in backend.list_records(KIND)]) == 600
    assert requests.n_items < 1.5 * 600


async def test_labels_that_are_rare(backend):
    """A listing by label looks at each record a few times at most, however few carry it."""
    writes = [Write(f"k{i}", b"", None, label="rare" if i % 100 == 0 else "usual") for i in range(600)]
    await backend.compare_and_set(KIND, writes)
    with Requests(backend) as requests:
        found = [record.key async for record in backend.list_records(KIND, labels=["rare"])]
    assert len(found) == 6
    assert requests.n_items < 2.2 * 600


async def test_more_labels_than_a_request_can_name(backend):
    """Listing by more labels than DynamoDB compares at once finds those and no others."""
    await backend.compare_and_set(KIND, [Write(f"k{i:03d}", b"", None, label=f"l{i}") for i in range(300)])
    labels = [f"l{i}" for i in range(0, 300, 2)]
    expected = [f"k{i:03d}" for i in range(0, 300, 2)]
    assert await backend.list_keys(KIND, labels) == expected
    assert [record.key async for record in backend.list_records(KIND, labels=labels)] == expected
