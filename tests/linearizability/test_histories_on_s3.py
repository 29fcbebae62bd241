"""Histories of clients of a bucket: three openings of one store, so that some share a writer and others race."""

import pytest

from resources.records.backend import RecordBackend
from resources.records.s3.s3_backend import S3Backend
from tests.linearizability.contract import LinearizabilityContract
from tests.records.s3_store import location_of
from tests.servers.clients import s3_client


class HistoriesOnS3(LinearizabilityContract):
    n_histories = 20

    @pytest.fixture
    async def openings(self, backend):
        """The store, opened three times."""
        others = [S3Backend(backend.location) for _ in range(2)]
        yield [backend, *others]
        for other in others:
            await other.close()


class TestOnMoto(HistoriesOnS3):
    @pytest.fixture
    async def backend(self, moto_url, bucket_name) -> RecordBackend:
        """A backend on a new bucket."""
        s3_client(moto_url).create_bucket(Bucket=bucket_name)
        opened = S3Backend(location_of(bucket_name, moto_url))
        yield opened
        await opened.close()


@pytest.mark.servers
class TestOnSeaweedFS(HistoriesOnS3):
    @pytest.fixture
    async def backend(self, seaweedfs, bucket_name) -> RecordBackend:
        """A backend on a new bucket of a real server."""
        s3_client(seaweedfs.url).create_bucket(Bucket=bucket_name)
        opened = S3Backend(location_of(bucket_name, seaweedfs.url))
        yield opened
        await opened.close()
