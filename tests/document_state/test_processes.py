"""Many worker processes at one state, on each backend that more than one process can open."""

import pytest

from tests.document_state.processes_contract import ManyWorkersContract
from tests.records.dynamodb_tables import new_table
from tests.records.s3_store import location_of
from tests.servers.clients import patient, s3_client


class TestOnSqlite(ManyWorkersContract):
    @pytest.fixture
    def uri(self, tmp_path) -> str:
        """A new file."""
        return f"sqlite:///{tmp_path / 'state.db'}"


class TestOnS3(ManyWorkersContract):
    N_PROCESSES = 4
    N_DOCUMENTS = 40

    @pytest.fixture
    def uri(self, moto_url, bucket_name) -> str:
        """A new bucket."""
        s3_client(moto_url).create_bucket(Bucket=bucket_name)
        return patient(location_of(bucket_name, moto_url).uri)


class TestOnDynamoDb(ManyWorkersContract):
    N_PROCESSES = 4
    N_DOCUMENTS = 40

    @pytest.fixture
    async def uri(self, moto_url, table_prefix) -> str:
        """A new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield patient(opened.uri)


@pytest.mark.servers
class TestOnSeaweedFS(ManyWorkersContract):
    @pytest.fixture
    def uri(self, seaweedfs, bucket_name) -> str:
        """A new bucket of a real server."""
        s3_client(seaweedfs.url).create_bucket(Bucket=bucket_name)
        return patient(location_of(bucket_name, seaweedfs.url).uri)


@pytest.mark.servers
class TestOnDynamoDbLocal(ManyWorkersContract):
    @pytest.fixture
    async def uri(self, dynamodb_local, table_prefix) -> str:
        """A new table of a real server."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield patient(opened.uri)
