"""Buckets for the tests of the S3 backend, and a proxy before moto that does harm on request."""

import functools
import uuid

import pytest
from botocore.loaders import JSONFileLoader

from resources.records.s3.s3_backend import S3Backend
from tests.records.s3_bases import HEAD
from tests.records.s3_store import is_base, location_of, objects_of, records_of
from tests.servers.clients import s3_client
from tests.servers.fault_proxy import FaultProxy


@pytest.fixture(scope="session", autouse=True)
def descriptions_read_once():
    """Each test opens clients of its own, and most of their time goes into botocore's descriptions of the services."""
    with pytest.MonkeyPatch.context() as patch:
        read = functools.cache(JSONFileLoader().load_file)  # by path
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: read(path))
        yield


@pytest.fixture(scope="session")
def crowded_bucket(seaweedfs) -> str:
    """A bucket for many tests, each on a prefix of its own: each bucket takes some of SeaweedFS's few volumes here."""
    name = f"records-{uuid.uuid4().hex}"
    s3_client(seaweedfs.url).create_bucket(Bucket=name)
    return name


@pytest.fixture
def raw(moto_url, bucket_name):
    """A plain client, and a new bucket."""
    client = s3_client(moto_url)
    client.create_bucket(Bucket=bucket_name)
    return client


@pytest.fixture
async def s3(raw, moto_url, bucket_name):
    """A backend on the bucket, in which nothing was written yet."""
    opened = S3Backend(location_of(bucket_name, moto_url))
    yield opened
    await opened.close()


@pytest.fixture
def proxy(moto_url):
    """A proxy before moto."""
    with FaultProxy(moto_url) as standing:
        yield standing


@pytest.fixture
async def proxied(raw, proxy, bucket_name):
    """A backend that asks through the proxy."""
    opened = S3Backend(location_of(bucket_name, proxy.url))
    yield opened
    await opened.close()


@pytest.fixture
async def others(raw, moto_url, bucket_name):
    """Another writer, whose line is good."""
    opened = S3Backend(location_of(bucket_name, moto_url))
    yield opened
    await opened.close()


@pytest.fixture
def seen(raw, bucket_name):
    """What lies in the bucket, around the backend: the records of the shard, and the names of its bases."""

    def look() -> tuple[dict[str, dict], list[str]]:
        objects = objects_of(raw, bucket_name)
        return records_of(objects, HEAD), [name for name in objects if is_base(name)]

    return look
