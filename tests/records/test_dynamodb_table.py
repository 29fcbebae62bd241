"""How the table is made, and what is said where it is missing or another."""

import asyncio
import threading

import pytest

from resources.records.backend import BackendError, BackendUnavailableError, WrongOptionError
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from resources.records.dynamodb.item import Item
from resources.records.record import Write
from resources.records.uri import UnknownSchemeError, open_backend
from tests.records.contract import KIND, NOW, listed, put
from tests.records.dynamodb_tables import location
from tests.servers.clients import dynamodb_client
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import answer, dynamodb_error

TEXT = "S"


@pytest.fixture
def client(moto_url):
    return dynamodb_client(moto_url)


@pytest.fixture
def table(table_prefix):
    return f"{table_prefix}made"


@pytest.fixture
async def backend(moto_url, table):
    opened = DynamoDbBackend(location(moto_url, table))
    yield opened
    await opened.close()


def make(client, table, hash_key="bucket", range_key="key", key_type=TEXT, indexes=()) -> None:
    """Make a table as somebody else might."""
    names = {hash_key, range_key} | {key["AttributeName"] for index in indexes for key in index["KeySchema"]}
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": key_type} for name in sorted(names)],
        KeySchema=schema(hash_key, range_key),
        **({"GlobalSecondaryIndexes": indexes} if indexes else {}),
    )


def schema(hash_key: str, range_key: str) -> list[Item]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


class TestCreating:
    async def test_the_table_is_what_we_need(self, backend, client, table):
        """It is paid by request, has both indexes, and each index holds the least it can."""
        await backend.create()
        made = client.describe_table(TableName=table)["Table"]
        assert made["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert made["KeySchema"] == schema("bucket", "key")
        assert {
            index["IndexName"]: (index["KeySchema"], index["Projection"]) for index in made["GlobalSecondaryIndexes"]
        } == {
            "due": (schema("bucket", "due"), {"ProjectionType": "KEYS_ONLY"}),
            "open": (
                schema("open_bucket", "key"),
                {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["label", "format"]},
            ),
        }

    async def test_repeating_changes_nothing(self, backend):
        """Made again, the table keeps its records."""
        await backend.create()
        await put(backend, "a")
        await backend.create()
        assert [record.key for record in await listed(backend)] == ["a"]

    async def test_many_make_it_at_once(self, backend, moto_url, table):
        """Of many who make it at once each finds it made."""
        errors = []

        def make_it():
            try:
                asyncio.run(DynamoDbBackend(location(moto_url, table)).create())
            except Exception as error:  # noqa: BLE001 - shown below
                errors.append(error)

        threads = [threading.Thread(target=make_it) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert errors == []
        await put(backend, "a")

    async def test_no_shards(self, backend):
        """A table has no shards."""
        with pytest.raises(WrongOptionError, match="shards"):
            await backend.create(shards=4)

    @pytest.mark.parametrize(
        "other",
        [{"hash_key": "id"}, {"range_key": "sort"}, {"hash_key": "key", "range_key": "bucket"}, {"key_type": "B"}],
    )
    async def test_a_table_with_other_keys(self, backend, client, table, other):
        """Somebody else's table is refused and stays as it is."""
        make(client, table, **other)
        before = client.describe_table(TableName=table)
        with pytest.raises(BackendError, match="other keys") as raised:
            await backend.create()
        assert not isinstance(raised.value, BackendUnavailableError)
        assert client.describe_table(TableName=table)["Table"] == before["Table"]

    async def test_missing_indexes_are_added(self, backend, client, table):
        """A table of our keys gets the indexes it lacks."""
        make(client, table)
        await backend.create()
        await put(backend, "a", due_at=NOW, open=True)
        assert [due.key for due in await backend.list_due(KIND, NOW, 5)] == ["a"]
        assert [found.key for found in await backend.list_open(KIND)] == ["a"]

    @pytest.mark.parametrize(
        "index",
        [
            {"IndexName": "due", "KeySchema": schema("due", "key"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
            {
                "IndexName": "open",
                "KeySchema": schema("open_bucket", "key"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
    )
    async def test_another_index_of_the_name(self, backend, client, table, index):
        """An index that has our name and not what we need is refused by name."""
        make(client, table, indexes=[index])
        with pytest.raises(BackendError, match=f"index '{index['IndexName']}'"):
            await backend.create()

    async def test_not_permitted(self, moto_url, table):
        """Who may not make it is told the permission."""
        with FaultProxy(moto_url) as proxy:
            proxy.inject(dynamodb_error("AccessDeniedException"), times=100)
            backend = DynamoDbBackend(location(proxy.url, table))
            with pytest.raises(BackendError, match="CreateTable is not permitted"):
                await backend.create()
            await backend.close()


class TestMissing:
    async def test_opening_makes_nothing(self, backend, client, table):
        """Reading, writing and listing where there is no table say how it is made, and make none."""
        for call in (
            backend.read(KIND, "a"),
            backend.compare_and_set(KIND, [Write("a", b"", None)]),
            listed(backend),
            backend.list_due(KIND, NOW, 5),
            backend.list_open(KIND),
            backend.list_kinds(),
            backend.count_labels(KIND),
        ):
            with pytest.raises(BackendError, match="ingest state create") as raised:
                await call
            assert not isinstance(raised.value, BackendUnavailableError)
        assert table not in client.list_tables()["TableNames"]

    async def test_a_missing_index(self, backend, client, table):
        """Without its indexes the table serves reads and writes, and a listing says what to do."""
        make(client, table)
        await put(backend, "a", due_at=NOW, open=True)
        for call in (backend.list_due(KIND, NOW, 5), backend.list_open(KIND)):
            with pytest.raises(BackendError, match=r"index.*ingest state create"):
                await call

    async def test_an_index_that_is_being_made(self, moto_url, backend, table):
        """An index that is not filled yet is worth another try."""
        await backend.create()
        with FaultProxy(moto_url) as proxy:
            says = (
                b'{"__type": "x#ValidationException", "message": "Cannot read from backfilling global secondary index"}'
            )
            proxy.inject(answer(400, says, "application/x-amz-json-1.0"), times=100)
            through = DynamoDbBackend(location(proxy.url, table))
            with pytest.raises(BackendUnavailableError, match="being made"):
                await through.list_due(KIND, NOW, 5)
            await through.close()


class TestUri:
    def test_opened(self, tmp_path):
        """A URI names table, endpoint and region, and is shown as it was given."""
        uri = "dynamodb://my.table?endpoint_url=http://127.0.0.1:8000&region=eu-central-1"
        backend = open_backend(uri, tmp_path)
        assert isinstance(backend, DynamoDbBackend)
        assert backend.uri == uri

    @pytest.mark.parametrize("rest", ["", "t/prefix", "t?shards=3", "key:secret@t", "t#x", "t?endpoint_url=here"])
    def test_parts_it_does_not_know(self, tmp_path, rest):
        """A table has no prefix; unknown options and credentials are refused."""
        with pytest.raises(UnknownSchemeError):
            open_backend(f"dynamodb://{rest}", tmp_path)
