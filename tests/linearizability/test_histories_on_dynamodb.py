"""Histories of clients of a DynamoDB table."""

import pytest

from resources.records.backend import RecordBackend
from tests.linearizability.contract import LinearizabilityContract
from tests.records.dynamodb_tables import new_table
from tests.servers.sampling import full_size


class TestOnMoto(LinearizabilityContract):
    n_histories = 20

    @pytest.fixture
    async def backend(self, moto_url, table_prefix) -> RecordBackend:
        """A backend on a new table."""
        async with new_table(moto_url, table_prefix) as opened:
            yield opened


@pytest.mark.servers
class TestOnDynamoDbLocal(LinearizabilityContract):
    n_histories = full_size(small=20, full=200)

    @pytest.fixture
    async def backend(self, dynamodb_local, table_prefix) -> RecordBackend:
        """A backend on a new table of a real server."""
        async with new_table(dynamodb_local, table_prefix) as opened:
            yield opened
