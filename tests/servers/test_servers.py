"""What the tests of the state on S3 and DynamoDB rely on, asked of the servers themselves."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.servers.clients import dynamodb_client, s3_client

RACERS = 4


def code_of(call, **arguments) -> str:
    """The error a call ends with; empty if it succeeds."""
    try:
        call(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def race(call) -> list[str]:
    """The errors of several equal calls at once, in order."""
    with ThreadPoolExecutor(RACERS) as pool:
        return sorted(pool.map(lambda _: code_of(call), range(RACERS)))


@pytest.fixture(params=["moto", pytest.param("seaweedfs", marks=pytest.mark.servers)])
def s3(request):
    """A client of each S3 server."""
    fixture = request.getfixturevalue("moto_url" if request.param == "moto" else "seaweedfs")
    return s3_client(fixture if request.param == "moto" else fixture.url)


@pytest.fixture
def bucket(s3, bucket_name):
    """An empty bucket on it."""
    s3.create_bucket(Bucket=bucket_name)
    return bucket_name


@pytest.fixture(params=["moto", pytest.param("dynamodb_local", marks=pytest.mark.servers)])
def dynamodb(request):
    """A client of each DynamoDB server."""
    return dynamodb_client(request.getfixturevalue("moto_url" if request.param == "moto" else "dynamodb_local"))


@pytest.fixture
def table(dynamodb, table_prefix):
    """An empty table on it."""
    dynamodb.create_table(
        TableName=f"{table_prefix}things",
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return f"{table_prefix}things"


class TestS3:
    def test_creates_once(self, s3, bucket):
        """If-None-Match: * creates an object and refuses to replace it."""
        assert code_of(s3.put_object, Bucket=bucket, Key="a", Body=b"1", IfNoneMatch="*") == ""
        assert code_of(s3.put_object, Bucket=bucket, Key="a", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
        assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"1"

    def test_replaces_what_was_seen(self, s3, bucket):
        """If-Match replaces the object that was read and no other one."""
        seen = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
        assert code_of(s3.put_object, Bucket=bucket, Key="a", Body=b"2", IfMatch=seen) == ""
        assert code_of(s3.put_object, Bucket=bucket, Key="a", Body=b"3", IfMatch=seen) == "PreconditionFailed"
        assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"2"

    def test_replaces_nothing_that_is_gone(self, s3, bucket):
        """If-Match on a missing key writes nothing. Amazon and moto say NoSuchKey, SeaweedFS PreconditionFailed."""
        seen = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
        refusal = code_of(s3.put_object, Bucket=bucket, Key="b", Body=b"2", IfMatch=seen)
        assert refusal in ("NoSuchKey", "PreconditionFailed")
        assert code_of(s3.get_object, Bucket=bucket, Key="b") == "NoSuchKey"

    def test_reads_what_is_new(self, s3, bucket):
        """A GET with If-None-Match answers 304 while the object is the one that was seen."""
        seen = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
        assert code_of(s3.get_object, Bucket=bucket, Key="a", IfNoneMatch=seen) == "304"
        s3.put_object(Bucket=bucket, Key="a", Body=b"2")
        assert code_of(s3.get_object, Bucket=bucket, Key="a", IfNoneMatch=seen) == ""

    def test_lists_the_etags_it_gives(self, s3, bucket):
        """An object's ETag is one and the same when it is written, read and listed."""
        written = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
        [listed] = s3.list_objects_v2(Bucket=bucket)["Contents"]
        assert listed["ETag"] == written == s3.get_object(Bucket=bucket, Key="a")["ETag"]

    def test_one_wins_a_race_to_create(self, s3, bucket):
        """Of several at once one creates the object."""
        results = race(lambda: s3.put_object(Bucket=bucket, Key="a", Body=b"1", IfNoneMatch="*"))
        assert results == ["", *["PreconditionFailed"] * (RACERS - 1)]

    def test_one_wins_a_race_to_replace(self, s3, bucket):
        """Of several at once that saw the same object one replaces it."""
        seen = s3.put_object(Bucket=bucket, Key="a", Body=b"0")["ETag"]
        results = race(lambda: s3.put_object(Bucket=bucket, Key="a", Body=b"1", IfMatch=seen))
        assert results == ["", *["PreconditionFailed"] * (RACERS - 1)]


class TestDynamoDB:
    def test_creates_once(self, dynamodb, table):
        """A condition that an item is absent creates it and refuses to replace it."""
        put = {"TableName": table, "Item": {"key": {"S": "a"}}, "ConditionExpression": "attribute_not_exists(#k)"}
        put["ExpressionAttributeNames"] = {"#k": "key"}
        assert code_of(dynamodb.put_item, **put) == ""
        assert code_of(dynamodb.put_item, **put) == "ConditionalCheckFailedException"

    def test_one_wins_a_race_to_create(self, dynamodb, table):
        """Of several at once one creates the item."""
        put = {"TableName": table, "Item": {"key": {"S": "a"}}, "ConditionExpression": "attribute_not_exists(#k)"}
        put["ExpressionAttributeNames"] = {"#k": "key"}
        results = race(lambda: dynamodb.put_item(**put))
        assert results == ["", *["ConditionalCheckFailedException"] * (RACERS - 1)]


@pytest.mark.servers
def test_seaweedfs_checks_signatures(seaweedfs, bucket_name):
    """SeaweedFS refuses a request that is signed with another secret."""
    client = s3_client(seaweedfs.url, secret="wrong")
    assert code_of(client.create_bucket, Bucket=bucket_name) == "SignatureDoesNotMatch"
