"""Many processes at one bucket and one table; those at one file are in test_sqlite_backend.py."""

import pytest

from tests.records.dynamodb_tables import new_table
from tests.records.processes_contract import ManyProcessesContract
from tests.records.s3_store import location_of
from tests.servers.clients import patient, s3_client


class TestOnS3(ManyProcessesContract):
    N_PROCESSES = 4
    INCREMENTS = 20

    @pytest.fixture
    def uri(self, moto_url, bucket_name) -> str:
        """A new bucket."""
        s3_client(moto_url).create_bucket(Bucket=bucket_name)
        return patient(location_of(bucket_name, moto_url).uri)


class TestOnDynamoDb(ManyProcessesContract):
    N_PROCESSES = 4
    INCREMENTS = 20

    @pytest.fixture
    async def uri(self, moto_url, table_prefix) -> str:
        """A new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield patient(opened.uri)


@pytest.mark.servers
class TestOnSeaweedFS(ManyProcessesContract):
    INCREMENTS = 25

    @pytest.fixture
    def uri(self, seaweedfs, bucket_name) -> str:
        """A new bucket of a real server."""
        s3_client(seaweedfs.url).create_bucket(Bucket=bucket_name)
        return patient(location_of(bucket_name, seaweedfs.url).uri)


@pytest.mark.servers
class TestOnDynamoDbLocal(ManyProcessesContract):
    @pytest.fixture
    async def uri(self, dynamodb_local, table_prefix) -> str:
        """A new table of a real server."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield patient(opened.uri)
