"""The DynamoDB backend keeps the contract: in small on moto, at full size on a real server."""

import pytest

from resources.records import backend as backend_module
from resources.records.backend import RecordBackend
from tests.document_state.contract import DocumentStateStoreContract
from tests.records import contract
from tests.records.contract import RecordBackendContract
from tests.records.dynamodb_tables import losing_replies, new_table
from tests.servers.sampling import full_size


class DynamoDbContract(RecordBackendContract):
    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See RecordBackendContract."""
        return losing_replies(backend, raises=raises)


class TestOnMoto(DynamoDbContract):
    INCREMENTS = 10

    @pytest.fixture(autouse=True)
    def small_pages(self, monkeypatch):
        """The contract measures in pages, and a request to moto takes 4 ms."""
        for module in (contract, backend_module):
            monkeypatch.setattr(module, "PAGE", 150)

    @pytest.fixture
    async def backend(self, moto_url, table_prefix) -> RecordBackend:
        """A backend on a new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield opened


@pytest.mark.servers
class TestOnDynamoDbLocal(DynamoDbContract):
    INCREMENTS = full_size(small=25, full=250)

    @pytest.fixture
    async def backend(self, dynamodb_local, table_prefix) -> RecordBackend:
        """A backend on a new table."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield opened


class TestDocumentStateOnMoto(DocumentStateStoreContract):
    @pytest.fixture
    async def backend(self, moto_url, table_prefix) -> RecordBackend:
        """A backend on a new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield opened


@pytest.mark.servers
class TestDocumentStateOnDynamoDbLocal(DocumentStateStoreContract):
    @pytest.fixture
    async def backend(self, dynamodb_local, table_prefix) -> RecordBackend:
        """A backend on a new table."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield opened
