"""Tables for the tests of the DynamoDB backend, and backends whose replies are lost."""

import contextlib
from collections.abc import AsyncIterator
from unittest import mock

from resources.aws import client
from resources.aws.location import AwsLocation
from resources.records.backend import BackendUnavailableError
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from tests.servers.clients import REGION


def location(url: str, table: str) -> AwsLocation:
    """Where a table of a server under test is."""
    return AwsLocation("dynamodb", table, endpoint_url=url, region=REGION)


@contextlib.asynccontextmanager
async def new_table(url: str, prefix: str) -> AsyncIterator[DynamoDbBackend]:
    """A backend on a table nothing was written to.

    It is patient: moto answers one request at a time, and reads the whole table for a look into an index.
    """
    backend = DynamoDbBackend(location(url, f"{prefix}records"))
    with mock.patch.dict(client._READ_SECONDS, dynamodb=60):
        backend._calls._client()
    await backend.create()
    yield backend
    await backend.close()


class LosingDynamoDb(DynamoDbBackend):
    """Commits, then loses the reply."""

    raises = False

    async def _write(self, kind, writes):
        done = await super()._write(kind, writes)
        if self.raises:
            raise BackendUnavailableError(self.uri, "the line broke")
        return [False for _ in done]


def losing_replies(backend: DynamoDbBackend, *, raises: bool) -> LosingDynamoDb:
    """The same table through a backend that loses its replies."""
    losing = LosingDynamoDb(backend._calls._location)
    losing.raises = raises
    return losing
