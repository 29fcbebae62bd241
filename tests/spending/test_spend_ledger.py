"""The spend ledger keeps its contract on every backend, with every lost reply."""

import uuid

import pytest

from resources.records.backend import BackendUnavailableError, RecordBackend
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from resources.records.memory_backend import MemoryBackend
from resources.records.s3.s3_backend import S3Backend
from resources.records.sqlite_backend import SqliteBackend
from tests.records.dynamodb_tables import new_table
from tests.records.s3_store import location_of
from tests.servers.clients import s3_client
from tests.spending.contract import SpendLedgerContract


def losing(kind: type[RecordBackend]) -> type[RecordBackend]:
    """A backend that commits, then loses every other reply: one in a row, or nothing would ever be known."""

    class Losing(kind):
        raises = False
        loses = True

        async def _write(self, kind, writes):
            done = await super()._write(kind, writes)
            self.loses = not self.loses
            if self.loses:
                return done
            if self.raises:
                raise BackendUnavailableError(self.uri, "the line broke")
            return [False for _ in done]

    return Losing


class TestOnMemory(SpendLedgerContract):
    @pytest.fixture
    def backend(self) -> RecordBackend:
        """An empty backend."""
        return MemoryBackend()

    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See SpendLedgerContract."""
        lossy = losing(MemoryBackend)()
        lossy._kinds, lossy._lock, lossy.raises = backend._kinds, backend._lock, raises
        return lossy


class TestOnSqlite(SpendLedgerContract):
    @pytest.fixture
    async def backend(self, tmp_path) -> RecordBackend:
        """A backend on a new file."""
        opened = SqliteBackend(tmp_path / "state.db")
        yield opened
        await opened.close()

    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See SpendLedgerContract."""
        lossy = losing(SqliteBackend)(backend.path)
        lossy.raises = raises
        return lossy


class _OnS3(SpendLedgerContract):
    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See SpendLedgerContract."""
        lossy = losing(S3Backend)(backend.location)
        lossy.raises = raises
        return lossy


class TestOnMoto(_OnS3):
    @pytest.fixture
    async def backend(self, moto_url, bucket_name) -> RecordBackend:
        """A backend on a new bucket."""
        s3_client(moto_url).create_bucket(Bucket=bucket_name)
        opened = S3Backend(location_of(bucket_name, moto_url))
        yield opened
        await opened.close()


@pytest.mark.servers
class TestOnSeaweedFS(_OnS3):
    @pytest.fixture(scope="class")
    def crowded_bucket(self, seaweedfs) -> str:
        """A bucket for all of these tests."""
        name = f"spend-{uuid.uuid4().hex}"
        s3_client(seaweedfs.url).create_bucket(Bucket=name)
        return name

    @pytest.fixture
    async def backend(self, seaweedfs, aws_credentials, crowded_bucket) -> RecordBackend:
        """A backend on a new prefix of a real server."""
        opened = S3Backend(location_of(crowded_bucket, seaweedfs.url, f"{uuid.uuid4().hex}/"))
        yield opened
        await opened.close()


class _OnDynamoDb(SpendLedgerContract):
    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See SpendLedgerContract."""
        lossy = losing(DynamoDbBackend)(backend._calls._location)
        lossy.raises = raises
        return lossy


class TestOnDynamoDb(_OnDynamoDb):
    @pytest.fixture
    async def backend(self, moto_url, table_prefix) -> RecordBackend:
        """A backend on a new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield opened


@pytest.mark.servers
class TestOnDynamoDbLocal(_OnDynamoDb):
    @pytest.fixture
    async def backend(self, dynamodb_local, table_prefix) -> RecordBackend:
        """A backend on a new table of a real server."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield opened
