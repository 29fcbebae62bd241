"""The S3 backend keeps the contract of record backends: on moto, and on SeaweedFS, whose answers differ."""

import uuid

import pytest

from resources.records.backend import RecordBackend
from resources.records.s3 import shard
from resources.records.s3.s3_backend import S3Backend
from tests.records.contract import RecordBackendContract
from tests.records.s3_store import LosingS3, location_of
from tests.servers.clients import s3_client


class S3Contract(RecordBackendContract):
    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See RecordBackendContract."""
        losing = LosingS3(backend.location)
        losing.raises = raises
        return losing


class TestOnMoto(S3Contract):
    INCREMENTS = 15

    @pytest.fixture
    async def backend(self, moto_url, bucket_name) -> RecordBackend:
        """A backend on a new bucket."""
        s3_client(moto_url).create_bucket(Bucket=bucket_name)
        opened = S3Backend(location_of(bucket_name, moto_url))
        yield opened
        await opened.close()


class _OnSeaweedFS(S3Contract):
    INCREMENTS = 25

    @pytest.fixture
    async def backend(self, seaweedfs, aws_credentials, crowded_bucket) -> RecordBackend:
        """A backend on a new prefix."""
        opened = S3Backend(location_of(crowded_bucket, seaweedfs.url, f"{uuid.uuid4().hex}/"))
        yield opened
        await opened.close()


@pytest.mark.servers
class TestOnSeaweedFS(_OnSeaweedFS):
    pass


@pytest.mark.servers
class TestWithBasesOnSeaweedFS(_OnSeaweedFS):
    @pytest.fixture(autouse=True)
    def each_change_makes_a_base(self, monkeypatch):
        """No head is small enough."""
        monkeypatch.setattr(shard, "SMALL", 0)
