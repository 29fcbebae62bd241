"""The proxy's faults as boto3 sees them."""

import time

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.servers.clients import dynamodb_client, s3_client
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import cut_after, cut_before, delay, dynamodb_error, s3_error


@pytest.fixture
def proxy(moto_url, bucket_name):
    """A proxy before a server with an empty bucket."""
    s3_client(moto_url).create_bucket(Bucket=bucket_name)
    with FaultProxy(moto_url) as proxy:
        yield proxy


def put_of(client, bucket: str, **arguments) -> int:
    """The status of a PUT of the object `a`."""
    try:
        answer = client.put_object(Bucket=bucket, Key="a", Body=b"1", **arguments)
    except ClientError as error:
        answer = error.response
    return int(answer["ResponseMetadata"]["HTTPStatusCode"])


def body_of(url: str, bucket: str) -> bytes | None:
    """The object `a`, read around the proxy; None if it is absent."""
    found = s3_client(url).list_objects_v2(Bucket=bucket)["KeyCount"]
    return s3_client(url).get_object(Bucket=bucket, Key="a")["Body"].read() if found else None


def test_passes_everything_on(proxy, bucket_name):
    """Without faults a client sees what it would see without the proxy."""
    client = s3_client(proxy.url)
    body = bytes(range(256)) * 1000
    client.put_object(Bucket=bucket_name, Key="a b/ü%", Body=body)
    assert client.head_object(Bucket=bucket_name, Key="a b/ü%")["ContentLength"] == len(body)
    assert client.get_object(Bucket=bucket_name, Key="a b/ü%")["Body"].read() == body
    assert [found["Key"] for found in client.list_objects_v2(Bucket=bucket_name)["Contents"]] == ["a b/ü%"]
    client.delete_object(Bucket=bucket_name, Key="a b/ü%")
    assert client.list_objects_v2(Bucket=bucket_name)["KeyCount"] == 0


def test_cut_before_leaves_nothing(proxy, moto_url, bucket_name):
    """A request that is cut before the server changes nothing there."""
    proxy.inject(cut_before())
    with pytest.raises(ConnectionClosedError):
        s3_client(proxy.url).put_object(Bucket=bucket_name, Key="a", Body=b"1")
    assert body_of(moto_url, bucket_name) is None


def test_cut_before_is_tried_again(proxy, moto_url, bucket_name):
    """boto3 sends a request again whose connection broke, and the second one succeeds."""
    proxy.inject(cut_before())
    assert put_of(s3_client(proxy.url, attempts=3), bucket_name, IfNoneMatch="*") == 200
    assert proxy.traffic["PUT"].requests == 2
    assert body_of(moto_url, bucket_name) == b"1"


def test_cut_after_is_done(proxy, moto_url, bucket_name):
    """A request whose answer is cut has changed what it was to change."""
    proxy.inject(cut_after())
    with pytest.raises(ConnectionClosedError):
        s3_client(proxy.url).put_object(Bucket=bucket_name, Key="a", Body=b"1")
    assert body_of(moto_url, bucket_name) == b"1"


def test_cut_after_makes_boto3_refuse_its_own_write(proxy, moto_url, bucket_name):
    """boto3 creates an object, loses the answer, tries again and reports 412: its own object stands in its way."""
    proxy.inject(cut_after(), when=lambda request: request.conditional)
    assert put_of(s3_client(proxy.url, attempts=3), bucket_name, IfNoneMatch="*") == 412
    assert proxy.traffic["PUT"].requests == 2
    assert body_of(moto_url, bucket_name) == b"1"


def test_answers_for_s3(proxy, moto_url, bucket_name):
    """An invented answer reaches the client as S3's, and the server hears nothing."""
    proxy.inject(s3_error(503, "SlowDown"))
    with pytest.raises(ClientError, match="SlowDown"):
        s3_client(proxy.url).put_object(Bucket=bucket_name, Key="a", Body=b"1")
    assert body_of(moto_url, bucket_name) is None


def test_answers_for_dynamodb(proxy):
    """An invented answer is an exception of DynamoDB's, for the operation it is meant for."""
    client = dynamodb_client(proxy.url)
    proxy.inject(
        dynamodb_error("ProvisionedThroughputExceededException"), lambda request: request.operation == "GetItem"
    )
    client.list_tables()
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
        client.get_item(TableName="things", Key={"key": {"S": "a"}})
    assert {name: traffic.requests for name, traffic in proxy.traffic.items()} == {"ListTables": 1, "GetItem": 1}


def test_delays(proxy, bucket_name):
    """A delayed request takes its time and succeeds."""
    proxy.inject(delay(0.3))
    started = time.monotonic()
    assert put_of(s3_client(proxy.url), bucket_name) == 200
    assert time.monotonic() - started >= 0.3


def test_a_fault_meets_as_many_as_planned(proxy, bucket_name):
    """A fault meets the requests it is for, as often as it was told to, and then no more."""
    client = s3_client(proxy.url)
    proxy.inject(s3_error(500, "InternalError"), when=lambda request: request.method == "PUT", times=2)
    assert client.list_objects_v2(Bucket=bucket_name)["KeyCount"] == 0
    assert proxy.pending() == 2
    assert [put_of(client, bucket_name) for _ in range(3)] == [500, 500, 200]
    assert proxy.pending() == 0


def test_counts(proxy, bucket_name):
    """Requests and bytes are counted per operation, and counting starts anew when told to."""
    client = s3_client(proxy.url)
    client.put_object(Bucket=bucket_name, Key="a", Body=b"x" * 10_000)
    client.get_object(Bucket=bucket_name, Key="a")["Body"].read()
    client.list_objects_v2(Bucket=bucket_name)
    assert {name: traffic.requests for name, traffic in proxy.traffic.items()} == {"PUT": 1, "GET": 1, "LIST": 1}
    assert 10_000 < proxy.traffic["PUT"].sent < 12_000
    assert 10_000 < proxy.traffic["GET"].received < 12_000
    assert proxy.traffic["PUT"].received < 1_000
    proxy.reset_traffic()
    assert not proxy.traffic


@pytest.mark.servers
def test_signatures_stay_valid(seaweedfs, bucket_name):
    """A server that checks signatures accepts what the proxy passes on."""
    with FaultProxy(seaweedfs.url) as proxy:
        client = s3_client(proxy.url)
        client.create_bucket(Bucket=bucket_name)
        assert put_of(client, bucket_name, IfNoneMatch="*") == 200
        assert put_of(client, bucket_name, IfNoneMatch="*") == 412
        assert client.get_object(Bucket=bucket_name, Key="a")["Body"].read() == b"1"
