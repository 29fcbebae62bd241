"""Tables for the tests of the DynamoDB backend, and backends whose replies are lost."""

import contextlib
from collections.abc import AsyncIterator

from resources.aws.location import AwsLocation
from resources.records.backend import BackendUnavailableError
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from tests.servers.clients import PATIENCE, REGION


def location(url: str, table: str) -> AwsLocation:
    """Where a table of a server under test is.

    It is waited for long: moto answers one request at a time, and reads the whole table for a look into an index.
    """
    return AwsLocation("dynamodb", table, endpoint_url=url, region=REGION, read_timeout=PATIENCE)


@contextlib.asynccontextmanager
async def new_table(url: str, prefix: str) -> AsyncIterator[DynamoDbBackend]:
    """A backend on a table nothing was written to."""
    backend = DynamoDbBackend(location(url, f"{prefix}records"))
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
