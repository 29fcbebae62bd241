"""The artifact store in a bucket: the contract, and what is its own: damage, faults, one bucket for many."""

import hashlib
import threading
import uuid

import pytest
import zstandard
from moto import mock_aws

from resources.artifact_store.artifact_key import digest_of
from resources.artifact_store.artifact_store import ArtifactStore, ArtifactStoreError
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.artifact_store.s3_artifact_store import S3ArtifactStore
from resources.aws.location import parse_location
from tests.artifact_store.contract import ArtifactStoreContract, artifact
from tests.document_source.s3_places import ClosingProxy, cut_body, is_read
from tests.servers.clients import s3_client
from tests.servers.faults import answer, cut_after, cut_before, s3_error

ALWAYS = 1000


def is_write(request) -> bool:
    """Whether an object is written."""
    return request.operation == "PUT"


def store_of(bucket: str, url: str = "", prefix: str = "kept") -> S3ArtifactStore:
    """A store below a prefix of a bucket."""
    uri = f"s3://{bucket}/{prefix}" + (f"?endpoint_url={url}" if url else "")
    return S3ArtifactStore(parse_location(uri, takes_prefix=True))


@pytest.fixture
def bucket(moto_url, bucket_name):
    """A bucket of moto."""
    s3_client(moto_url).create_bucket(Bucket=bucket_name)
    return bucket_name


@pytest.fixture
def proxy(moto_url):
    """A proxy before moto."""
    with ClosingProxy(moto_url) as proxy:
        yield proxy


@pytest.fixture
def store(bucket, proxy):
    """A store that is reached by way of the proxy."""
    return store_of(bucket, proxy.url)


def key_in_bucket(key: str) -> str:
    """What an artifact's object is called."""
    return f"kept/artifacts/{key[:2]}/{key}.json.zst"


class TestS3ArtifactStore(ArtifactStoreContract):
    @pytest.fixture
    def store(self, bucket_name) -> ArtifactStore:
        """A store in an empty bucket of moto."""
        with mock_aws():
            store = store_of(bucket_name)
            store._client.create_bucket(Bucket=bucket_name)
            yield store

    def reopened(self, store) -> ArtifactStore:
        """See ArtifactStoreContract."""
        return S3ArtifactStore(store._location)


@pytest.mark.servers
class TestOnSeaweedFS(TestS3ArtifactStore):
    @pytest.fixture(scope="class")
    def server_bucket(self, seaweedfs) -> str:
        """A bucket of a real server, one for all: a bucket takes several of its few volumes."""
        s3_client(seaweedfs.url, 5).create_bucket(Bucket="artifacts")
        return "artifacts"

    @pytest.fixture
    def store(self, seaweedfs, server_bucket, aws_credentials) -> ArtifactStore:
        """A store under an empty prefix."""
        return store_of(server_bucket, seaweedfs.url, uuid.uuid4().hex)

    def test_hint_of_any_name(self, store):
        """A hint's name is no path, whatever it looks like."""
        for name in ("..", ".", "/", "a//b", "back\\slash", "%2F"):
            store.write_hint(name, name.encode())
        for name in ("..", ".", "/", "a//b", "back\\slash", "%2F"):
            assert store.read_hint(name) == name.encode()


class TestObjects:
    def test_key_is_the_hash_of_the_bytes(self, store, bucket, moto_url):
        """The object is named by its key and, unpacked around the store, hashes to it."""
        [key] = store.put_many([artifact()])
        [listed] = s3_client(moto_url).list_objects_v2(Bucket=bucket)["Contents"]
        assert listed["Key"] == key_in_bucket(key)
        body = s3_client(moto_url).get_object(Bucket=bucket, Key=listed["Key"])["Body"].read()
        assert hashlib.sha256(zstandard.ZstdDecompressor().decompress(body)).hexdigest() == digest_of(key)

    def test_one_request_for_each(self, store, proxy):
        """An artifact costs one request to keep and one to get, and a group one more for its generation."""
        keys = store.put_many([artifact(f"d{i % 30}") for i in range(60)])
        store.get_many(keys)
        assert {name: seen.requests for name, seen in proxy.traffic.items()} == {
            "LIST": 1,
            "PUT": 30,
            "GET": 30,
        }

    @pytest.mark.parametrize(
        "body", [b"junk", b"", zstandard.compress(b"not the artifact"), zstandard.compress(b"x" * 1000)[:-5]]
    )
    def test_damaged_counts_as_lost(self, store, bucket, moto_url, body, caplog):
        """An object that is not what its key says is told, never a wrong text, and mended by putting it again."""
        one, two = store.put_many([artifact("a"), artifact("b")])
        s3_client(moto_url).put_object(Bucket=bucket, Key=key_in_bucket(one), Body=body)
        assert set(store.get_many([one, two])) == {two}
        assert f"Artifact {one} in s3://{bucket}/kept" in caplog.text
        assert store.put_many([artifact("a")]) == [one]
        assert store.get_many([one]) == {one: artifact("a")}

    def test_other_things_in_the_bucket(self, store, bucket, moto_url):
        """What is not ours among the artifacts is neither named nor removed."""
        [key] = store.put_many([artifact()])
        s3_client(moto_url).put_object(Bucket=bucket, Key="kept/artifacts/ca/notes.v2.json.zst", Body=b"")
        assert [kept.key for page in store.pages() for kept in page] == [key]

    def test_one_that_cannot_be_removed_is_told(self, store, proxy, bucket, moto_url):
        """An answer that counts as a success names what it did not remove: that is a failure."""
        keys = store.put_many([artifact("a"), artifact("b")])
        fault = (
            f"<DeleteResult><Error><Key>{key_in_bucket(keys[0])}</Key><Code>AccessDenied</Code>"
            "<Message>no</Message></Error></DeleteResult>"
        ).encode()
        proxy.inject(answer(200, fault), lambda request: request.operation == "POST")
        with pytest.raises(ArtifactStoreError, match="not permitted"):
            store.remove_many(keys)

    def test_threads(self, store):
        """Many threads put and get at once by one store that none has used before."""
        failures = []

        def work(name: str) -> None:
            try:
                given = [artifact(f"{name}-{i}") for i in range(5)]
                keys = store.put_many(given)
                assert store.get_many(keys) == dict(zip(keys, given, strict=True))
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


class TestFaults:
    @pytest.mark.parametrize(
        "fault", [s3_error(503, "SlowDown"), cut_before(), cut_after()], ids=["slow", "cut", "lost"]
    )
    def test_passing_trouble_passes(self, store, proxy, fault):
        """A request that was throttled or whose reply was lost is sent again."""
        proxy.inject(fault, is_write)
        proxy.inject(fault, is_read)
        keys = store.put_many([artifact("a"), artifact("b")])
        assert len(store.get_many(keys)) == 2
        assert proxy.pending() == 0

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (s3_error(503, "SlowDown"), "throttled"),
            (s3_error(403, "AccessDenied"), "not permitted"),
            (s3_error(403, "SignatureDoesNotMatch"), "credentials are refused"),
            (s3_error(404, "NoSuchBucket"), "bucket does not exist"),
            (cut_before(), "No answer"),
        ],
        ids=["throttled", "denied", "credentials", "no bucket", "no answer"],
    )
    def test_trouble_is_told(self, store, bucket, proxy, fault, said):
        """What cannot be done is an error that names the store and says why: never an artifact that is not there."""
        [key] = store.put_many([artifact()])
        proxy.inject(fault, times=ALWAYS)
        calls = (
            lambda: store.put_many([artifact("b")]),
            lambda: store.get_many([key]),
            store.begin_generation,
            lambda: list(store.pages()),
            lambda: store.remove_many([key]),
            lambda: store.remove_documents(["a"]),
            lambda: store.write_hint("h", b""),
            lambda: store.read_hint("h"),
        )
        for call in calls:
            with pytest.raises(ArtifactStoreError, match=said) as raised:
                call()
            assert f"s3://{bucket}/kept" in str(raised.value)

    def test_one_of_many_fails(self, store, proxy):
        """If one is not kept, no key is given: no record may point to it."""
        proxy.inject(s3_error(403, "AccessDenied"), is_write)
        with pytest.raises(ArtifactStoreError):
            store.put_many([artifact(f"d{i}") for i in range(40)])
        assert len(store.put_many([artifact(f"d{i}") for i in range(40)])) == 40

    def test_body_that_breaks_off(self, store, proxy):
        """A body cut in the middle is no damage: the rest is asked for."""
        given = artifact("book", *(f"paragraph {i} " * 50 for i in range(500)))
        [key] = store.put_many([given])
        proxy.inject(cut_body(1000), is_read)
        assert store.get_many([key]) == {key: given}
        proxy.inject(cut_body(1000), is_read, ALWAYS)
        with pytest.raises(ArtifactStoreError):
            store.get_many([key])


class TestUris:
    @pytest.mark.parametrize(
        ("uri", "said"),
        [
            ("redis://x", "unknown artifact store scheme 'redis'.*Known: sqlite, s3"),
            ("artifacts.db", "unknown artifact store scheme"),
            ("sqlite://host/x", "takes no host"),
            ("sqlite:///", "write sqlite:///path"),
            ("s3:///prefix", "write s3://name/prefix"),
            ("s3://bucket?shards=3", "unknown option 'shards'.*Known: endpoint_url, region"),
            ("s3://key:secret@bucket", "carries no credentials"),
        ],
    )
    def test_mistakes(self, tmp_path, uri, said):
        """A URI that names no store is told what is known, and no secret is repeated."""
        with pytest.raises(ValueError, match=said) as raised:
            open_artifact_store(uri, tmp_path)
        assert "secret" not in str(raised.value)

    def test_relative_file(self, tmp_path):
        """A relative path counts from the base; percent-encoding is decoded."""
        open_artifact_store("sqlite:///a%20b/artifacts.db", tmp_path).put_many([artifact()])
        assert (tmp_path / "a b" / "artifacts.db").exists()
