"""What the S3 backend says when a bucket, an endpoint or a permission is not as it should be."""

import socket

import pytest

from resources.aws.client import open_client
from resources.records.backend import BackendError, BackendUnavailableError, RecordTooLargeError
from resources.records.record import Write
from resources.records.s3 import bucket, packing, s3_backend
from resources.records.s3.s3_backend import S3Backend
from resources.records.s3.shard_cache import ShardCache
from resources.records.uri import UnknownSchemeError, open_backend
from tests.records.contract import KIND, NOW, listed, put
from tests.records.s3_store import location_of, objects_of
from tests.servers.faults import HeldRequests, s3_error


@pytest.fixture
def once(monkeypatch, aws_credentials):
    """boto3 sends each request once."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


READING = {
    "read": lambda backend: backend.read(KIND, "a"),
    "list_records": listed,
    "list_due_together": lambda backend: backend.list_due_together(KIND, NOW, 1, "me"),
    "list_kinds": lambda backend: backend.list_kinds(),
}
EVERY_CALL = READING | {
    "compare_and_set": lambda backend: backend.compare_and_set(KIND, [Write("a", b"", None)]),
    "create": lambda backend: backend.create(),
}


async def check_outage(backend):
    """Whatever is asked of the backend, it tells that its store is unavailable."""
    for call in EVERY_CALL.values():
        with pytest.raises(BackendUnavailableError, match=r"state\?endpoint_url"):
            await call(backend)


async def check_health(backend):
    """What was written before the outage is there, and writing works."""
    await put(backend, "a")
    assert [record.key for record in await listed(backend)] == ["a", "b"]


class TestAnswers:
    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (s3_error(403, "AccessDenied"), "not permitted"),
            (s3_error(403, "InvalidAccessKeyId"), "credentials"),
            (s3_error(403, "SignatureDoesNotMatch"), "credentials"),
            (s3_error(404, "NoSuchBucket"), "bucket does not exist"),
            (s3_error(501, "NotImplemented"), "NotImplemented"),
        ],
    )
    async def test_what_a_person_must_mend(self, proxied, proxy, once, fault, said):
        """An answer that trying again does not change is an error that names the store and says what is wrong."""
        await put(proxied, "b")
        await proxied.close()
        proxy.inject(fault, times=1_000)
        for call in EVERY_CALL.values():
            with pytest.raises(BackendError, match=said) as raised:
                await call(proxied)
            assert proxied.uri in str(raised.value)
            assert not isinstance(raised.value, BackendUnavailableError)

    @pytest.mark.parametrize("fault", [s3_error(500, "InternalError"), s3_error(503, "SlowDown")], ids=["500", "503"])
    async def test_what_may_heal(self, proxied, proxy, once, fault):
        """An outage is told as one, whatever is asked; when it is over, the same backend works."""
        await put(proxied, "b")
        await proxied.close()
        proxy.inject(fault, times=1_000)
        await check_outage(proxied)
        proxy._planned.clear()
        await check_health(proxied)

    async def test_a_silent_server(self, proxied, proxy, once):
        """The same of a server that takes requests and does not answer for longer than it is waited for."""
        await put(proxied, "b")
        await proxied.close()
        with HeldRequests() as held, pytest.MonkeyPatch.context() as hasty:
            hasty.setattr(bucket, "_READ_SECONDS", 0.3)
            proxy.inject(held, times=1_000)
            await check_outage(proxied)
            proxy._planned.clear()
        await proxied.close()  # whose client waits no longer than it did
        await check_health(proxied)

    async def test_no_bucket(self, moto_url, aws_credentials):
        """A bucket that is not there is told, and not made."""
        backend = S3Backend(location_of("no-such-bucket", moto_url))
        for call in EVERY_CALL.values():
            with pytest.raises(BackendError, match="bucket does not exist"):
                await call(backend)
        await backend.close()

    async def test_who_may_only_read(self, proxied, proxy, raw, bucket_name):
        """Without permission to write, everything is read, and a write says which permission is missing."""
        await put(proxied, "a")
        proxy.inject(s3_error(403, "AccessDenied"), lambda request: request.method in {"PUT", "DELETE"}, times=1_000)
        assert [record.key for record in await listed(proxied)] == ["a"]
        with pytest.raises(BackendError, match=r"thing/.*PutObject is not permitted"):
            await put(proxied, "b")

    async def test_how_long_it_waits(self, s3):
        """The state waits for a silent server for less than a third of a lease; what moves documents waits longer."""
        assert s3._bucket._client().meta.config.read_timeout == 8
        assert open_client(s3.location).meta.config.read_timeout == 30

    async def test_nothing_listens(self, aws_credentials, once):
        """An address where nobody answers is an outage."""
        backend = S3Backend(location_of("bucket", "http://127.0.0.1:9"))
        with pytest.raises(BackendUnavailableError, match="No answer"):
            await backend.read(KIND, "a")
        await backend.close()

    async def test_no_region_and_no_credentials(self, aws_credentials, monkeypatch):
        """What boto3 misses before it asks anybody is an error of ours."""
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        backend = S3Backend(location_of("bucket", "http://127.0.0.1:9"))
        with pytest.raises(BackendError, match=r"[Rr]egion|credentials"):
            await backend.read(KIND, "a")
        await backend.close()

    @pytest.mark.servers
    async def test_wrong_credentials(self, seaweedfs, aws_credentials, monkeypatch):
        """A server that checks signatures refuses wrong keys; the error says so and shows none."""
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
        backend = S3Backend(location_of("bucket", seaweedfs.url))
        with pytest.raises(BackendError, match="credentials are refused") as raised:
            await backend.read(KIND, "a")
        assert "wrong-secret" not in str(raised.value)
        await backend.close()

    @pytest.mark.parametrize("broken", [1, 3])
    async def test_a_body_that_breaks_off(self, proxied, proxy, raw, bucket_name, once, monkeypatch, broken):
        """A body that breaks off is read again; if it always does, that is an outage, and no half a shard is taken."""
        [result] = await proxied.compare_and_set(KIND, [Write("a", b"\0" + NOW.isoformat().encode() * 9, None)])
        monkeypatch.setattr(proxied._opening.reader, "_cache", ShardCache(10_000_000))
        exchange, left = proxy.exchange, [broken]

        def cut(request):
            answer = exchange(request)
            if request.method == "GET" and left[0]:
                left[0] -= 1
                return answer[:-40]
            return answer

        monkeypatch.setattr(proxy, "exchange", cut)
        if broken == 1:
            assert (await proxied.read(KIND, "a")).stamp == result.stamp
        else:
            with pytest.raises(BackendUnavailableError):
                await proxied.read(KIND, "a")
        assert left == [0]


class TestLimits:
    async def test_a_record_too_large(self, s3, raw, bucket_name):
        """A value larger than the limit is refused by name, and nothing of its call is written."""
        writes = [Write("b", b"", None), Write("a", bytes(s3_backend.LARGEST_VALUE + 1), None)]
        with pytest.raises(RecordTooLargeError, match="'a'"):
            await s3.compare_and_set(KIND, writes)
        assert objects_of(raw, bucket_name) == {}

    async def test_a_shard_too_large(self, s3, monkeypatch):
        """A shard that no reader would accept is not written."""
        stamp = await put(s3, "a")
        monkeypatch.setattr(packing, "LARGEST", 10_000)
        with pytest.raises(BackendError, match=r"thing/003.*at most"):
            await put(s3, "a", bytes(20_000), stamp)
        assert (await s3.read(KIND, "a")).stamp == stamp


def without(*headers):
    """A server that has never heard of some headers."""

    def fault(request, forward):
        for header in headers:
            del request.headers[header]
        return forward()

    return fault


class TestProbe:
    @pytest.mark.parametrize(
        ("ignored", "method", "said"),
        [
            ("If-None-Match", "PUT", "If-None-Match of a PUT"),
            ("If-Match", "PUT", "If-Match of a PUT"),
            ("If-None-Match", "GET", "If-None-Match of a GET"),
        ],
    )
    async def test_an_endpoint_that_ignores_conditions(self, proxied, proxy, raw, bucket_name, ignored, method, said):
        """It is refused before anything is written, by making the store and by a first write, and nothing is left."""
        proxy.inject(without(ignored), lambda request: request.method == method, times=1_000)
        for call in (proxied.create(), proxied.compare_and_set(KIND, [Write("a", b"", None)])):
            with pytest.raises(BackendError, match=said) as raised:
                await call
            assert proxy.url in str(raised.value)
            assert not isinstance(raised.value, BackendUnavailableError)
        assert objects_of(raw, bucket_name) == {}

    async def test_once_a_process(self, proxied, proxy):
        """The probe is made before the first write, and by no later backend of the process."""

        def probes() -> int:
            return sum(traffic.requests for operation, traffic in proxy.traffic.items() if operation == "DELETE")

        await proxied.read(KIND, "a")
        assert probes() == 0
        await put(proxied, "a")
        await proxied.close()
        await put(proxied, "b")
        await proxied.create()
        assert probes() == 1


class TestUri:
    @pytest.mark.parametrize(
        "uri", ["s3://", "s3:///prefix", "s3://key:secret@bucket", "s3://bucket?shards=3", "s3://bucket/p#f"]
    )
    def test_parts_it_does_not_know(self, uri, tmp_path):
        """A URI that is not a place in a bucket is refused, and no secret in it is repeated."""
        with pytest.raises(UnknownSchemeError) as raised:
            open_backend(uri, tmp_path)
        assert "secret" not in str(raised.value)

    def test_opening_asks_nobody(self, tmp_path, monkeypatch):
        """Opening a URI sends nothing."""
        monkeypatch.setattr(socket.socket, "connect", lambda _socket, address: pytest.fail(f"connects to {address}"))
        assert open_backend("s3://bucket/prefix?endpoint_url=http://192.0.2.1", tmp_path).uri.startswith("s3://bucket")
