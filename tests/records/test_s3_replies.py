"""Replies that get lost, at every conditional request: each change is made once and told truly."""

import itertools

import pytest

from resources.records.backend import BackendUnavailableError
from resources.records.record import Write
from resources.records.s3 import opening
from resources.records.s3.s3_backend import S3Backend
from resources.records.s3.shard import shard_of
from tests.records.contract import KIND, put
from tests.records.s3_store import cut_after_and, lines_of, location_of, objects_of
from tests.servers.faults import cut_after, cut_before, s3_error

A = f"state/thing/{shard_of('a', 64):03}.jsonl.zst"
BESIDE_A = next(key for key in map(str, itertools.count()) if shard_of(key, 64) == shard_of("a", 64))
FAULTS = {
    "cut before": cut_before(),
    "cut after": cut_after(),
    "503": s3_error(503, "SlowDown"),
    "409": s3_error(409, "ConditionalRequestConflict"),
}
# How often boto3 sends a request by itself: once, or again and again, so that it meets the answer to its own request.
CASES = [("1", name) for name in FAULTS] + [("5", "cut before"), ("5", "cut after")]
sent_again = pytest.mark.parametrize("attempts", ["1", "5"], indirect=True)


@pytest.fixture(autouse=True)
def attempts(request, aws_credentials, monkeypatch) -> str:
    """How often boto3 sends a request by itself."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", request.param)
    return request.param


@pytest.fixture
async def others(raw, moto_url, bucket_name):
    """Another writer, whose line is good."""
    opened = S3Backend(location_of(bucket_name, moto_url))
    yield opened
    await opened.close()


def puts_of_a(request) -> bool:
    """Whether a request writes the shard of `a`."""
    return request.method == "PUT" and request.path.endswith(A)


@pytest.mark.parametrize(("attempts", "fault"), CASES, indirect=True)
class TestOneLostReply:
    @pytest.fixture
    def fault(self, request):
        """What goes wrong."""
        return FAULTS[request.param]

    async def test_creation(self, proxied, proxy, raw, bucket_name, fault):
        """A record is created once, and its creator is told so."""
        await put(proxied, BESIDE_A)
        proxy.inject(fault, puts_of_a)
        stamp = await put(proxied, "a", b"1")
        assert proxy.pending() == 0
        found = {line["key"]: line for line in lines_of(objects_of(raw, bucket_name)[A])}
        assert (found["a"]["version"], found["a"]["write_id"]) == (1, stamp.write_id)

    async def test_first_creation_in_a_shard(self, proxied, proxy, raw, bucket_name, fault):
        """The same where the object is not there yet."""
        await proxied.create()
        proxy.inject(fault, puts_of_a)
        stamp = await put(proxied, "a", b"1")
        assert proxy.pending() == 0
        assert [line["write_id"] for line in lines_of(objects_of(raw, bucket_name)[A])] == [stamp.write_id]

    async def test_change(self, proxied, proxy, raw, bucket_name, fault):
        """A record is changed once: its version grows by one."""
        first = await put(proxied, "a", b"1")
        proxy.inject(fault, puts_of_a)
        second = await put(proxied, "a", b"2", first)
        assert proxy.pending() == 0
        [found] = lines_of(objects_of(raw, bucket_name)[A])
        assert (found["value"], found["version"], found["write_id"]) == (2, 2, second.write_id)

    async def test_removal(self, proxied, proxy, raw, bucket_name, fault):
        """A record is removed."""
        stamp = await put(proxied, "a", b"1")
        proxy.inject(fault, puts_of_a)
        [removed] = await proxied.compare_and_set(KIND, [Write("a", None, stamp)])
        assert removed.written
        assert proxy.pending() == 0
        assert lines_of(objects_of(raw, bucket_name)[A]) == []

    async def test_refusal(self, proxied, proxy, others, fault):
        """Who comes too late is told so, and the record keeps what the other wrote."""
        first = await put(proxied, "a", b"1")
        winner = await put(others, "a", b"theirs", first)
        proxy.inject(fault, puts_of_a)
        [refused, beside] = await proxied.compare_and_set(KIND, [Write("a", b"2", first), Write(BESIDE_A, b"", None)])
        assert (refused.written, refused.stamp, beside.written) == (False, winner, True)
        assert (await others.read(KIND, "a")).value == b"theirs"

    async def test_layout(self, proxied, proxy, raw, bucket_name, fault):
        """A store is made once, with the number of shards that was asked for."""
        proxy.inject(fault, lambda request: request.method == "PUT" and "format.json" in request.path)
        await proxied.create(shards=16)
        assert proxy.pending() == 0
        assert objects_of(raw, bucket_name)["state/format.json"] == b'{"format":1,"shards":16}'

    async def test_probe(self, proxied, proxy, raw, bucket_name, fault, attempts):
        """A broken line never makes an honest endpoint a dishonest one, and the next try passes."""
        for number in range(3):
            opening._proven.clear()
            proxy.inject(fault, lambda request: request.method == "PUT" and "probe" in request.path)
            seen = itertools.count()
            proxy._planned[-1].when = lambda request, seen=seen, number=number: (
                request.method == "PUT" and "probe" in request.path and next(seen) == number
            )
            try:
                await proxied.create()
            except BackendUnavailableError:
                assert attempts == "1"
                opening._proven.clear()
                await proxied.create()
            assert proxy.pending() == 0
        if attempts == "5":
            assert set(objects_of(raw, bucket_name)) == {"state/format.json"}


@sent_again
class TestOthersMeanwhile:
    async def test_created_and_removed_again(self, proxied, proxy, others):
        """A record that we created and another removed, before we knew, is not created a second time."""
        await put(proxied, BESIDE_A)

        async def remove() -> None:
            found = await others.read(KIND, "a")
            await others.compare_and_set(KIND, [Write("a", None, found.stamp)])

        proxy.inject(cut_after_and(remove), puts_of_a)
        await put(proxied, "a")
        assert proxy.pending() == 0
        assert await others.read(KIND, "a") is None

    async def test_removed_and_created_again(self, proxied, proxy, others):
        """A record that we removed and another made anew, before we knew, counts as removed and stays."""
        stamp = await put(proxied, "a")

        async def create() -> None:
            await put(others, "a", b"theirs")

        proxy.inject(cut_after_and(create), puts_of_a)
        [removed] = await proxied.compare_and_set(KIND, [Write("a", None, stamp)])
        assert removed.written
        assert (await proxied.read(KIND, "a")).value == b"theirs"

    async def test_changed_further(self, proxied, proxy, others):
        """A record that we changed and others changed further is ours below theirs."""
        first = await put(proxied, "a", b"1")

        async def change() -> None:
            for value in (b"3", b"4"):
                found = await others.read(KIND, "a")
                await put(others, "a", value, found.stamp)

        proxy.inject(cut_after_and(change), puts_of_a)
        second = await put(proxied, "a", b"2", first)
        assert second.version == 2
        found = await proxied.read(KIND, "a")
        assert (found.value, found.stamp.version) == (b"4", 4)

    async def test_late_put_changes_nothing(self, proxied, proxy, others):
        """A PUT that was thought lost and arrives when its record was made and removed again is refused."""
        await put(proxied, BESIDE_A)
        before = await proxied.read(KIND, BESIDE_A)
        held = []
        proxy.inject(lambda _request, forward: held.append(forward), puts_of_a)
        stamp = await put(proxied, "a")
        [removed] = await proxied.compare_and_set(KIND, [Write("a", None, stamp)])
        assert removed.written
        assert [forward().status for forward in held] == [412]
        assert await others.read(KIND, "a") is None
        assert await others.read(KIND, BESIDE_A) == before


@pytest.mark.parametrize("attempts", ["1", "2"], indirect=True)
class TestOutage:
    @pytest.mark.parametrize("fault", [cut_before(), cut_after()], ids=["before", "after"])
    async def test_no_answer_at_all(self, proxied, proxy, others, fault):
        """If no answer comes through, nothing is known and the error says whose object; reading tells later."""
        first = await put(proxied, "a", b"1")
        proxy.inject(fault, lambda request: request.path.endswith(A), times=1000)
        with pytest.raises(BackendUnavailableError, match="thing/003") as raised:
            await put(proxied, "a", b"2", first)
        assert proxied.uri in str(raised.value)
        assert (await others.read(KIND, "a")).stamp.version in {1, 2}

    async def test_contention_has_an_end(self, proxied, proxy, monkeypatch):
        """Whoever always comes too late is told so after a bounded number of attempts."""
        monkeypatch.setattr("resources.records.s3.patience._LONGEST_PAUSE", 0.01)
        await put(proxied, "a")
        proxy.inject(s3_error(412, "PreconditionFailed"), puts_of_a, times=1000)
        with pytest.raises(BackendUnavailableError, match="others were first"):
            await put(proxied, BESIDE_A)
        proxy.inject(s3_error(409, "ConditionalRequestConflict"), puts_of_a, times=1000)
        with pytest.raises(BackendUnavailableError, match="others were first"):
            await put(proxied, BESIDE_A)
