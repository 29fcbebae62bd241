"""Every moment at which a compaction can end, and who may be there first."""

import pytest

from resources.records.backend import BackendUnavailableError
from resources.records.record import Write
from resources.records.s3.s3_backend import S3Backend
from tests.linearizability.test_histories_on_s3 import HistoriesOnS3
from tests.records.contract import KIND, put
from tests.records.s3_bases import KEYS, bytes_of, change, change_one, forget, puts_of_bases, puts_of_heads
from tests.records.s3_store import cut_after_and, location_of, then
from tests.servers.clients import s3_client
from tests.servers.faults import cut_after, cut_before, s3_error

FAULTS = {
    "cut before": cut_before(),
    "cut after": cut_after(),
    "503": s3_error(503, "SlowDown"),
    "409": s3_error(409, "ConditionalRequestConflict"),
}


CASES = [("1", name) for name in FAULTS] + [("5", "cut before"), ("5", "cut after")]


@pytest.fixture(autouse=True)
def attempts(request, aws_credentials, monkeypatch) -> str:
    """How often boto3 sends a request by itself; shards are large from 2,000 bytes on."""
    found = getattr(request, "param", "1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", found)
    monkeypatch.setattr("resources.records.s3.shard.SMALL", 2_000)
    return found


@pytest.mark.parametrize(("attempts", "fault"), CASES, indirect=["attempts"])
@pytest.mark.parametrize("where", [puts_of_bases, puts_of_heads])
async def test_one_lost_reply(proxied, proxy, seen, monkeypatch, attempts, fault, where):
    """Whatever happens to the PUT of a base or of its head, the change is made once, and one base stays."""
    await change(proxied)
    before = seen()[1]
    proxy.inject(FAULTS[fault], where)
    found = await change(proxied)
    assert proxy.pending() == 0
    records, bases = seen()
    assert {key: (line["version"], line["write_id"]) for key, line in records.items()} == {
        key: (2, record.stamp.write_id) for key, record in found.items()
    }
    assert len(bases) == 1
    assert bases != before
    await forget(proxied, monkeypatch)
    assert await proxied.read_many(KIND, KEYS[:20]) == found


class TestEnds:
    async def test_before_the_base(self, proxied, proxy, others, seen):
        """If no base can be put, the shard is as it was."""
        before = await change(others)
        was = seen()
        proxy.inject(s3_error(503, "SlowDown"), puts_of_bases, times=100)
        with pytest.raises(BackendUnavailableError):
            await change(proxied)
        assert seen() == was
        assert await others.read_many(KIND, KEYS[:20]) == before

    @pytest.mark.parametrize("fault", [cut_before(), s3_error(503, "SlowDown"), s3_error(403, "AccessDenied")])
    async def test_between_base_and_head(self, proxied, proxy, others, seen, fault):
        """If no head can be put any more, the shard is as it was; the next compaction removes the unnamed base."""
        before = await change(others)
        records, [base] = seen()
        proxy.inject(fault, puts_of_heads, times=100)
        with pytest.raises(Exception, match="thing/003"):
            await change(proxied)
        assert seen()[0] == records
        assert await others.read_many(KIND, KEYS[:20]) == before
        assert len(seen()[1]) > 1
        await change(others)
        assert len(seen()[1]) == 1
        assert base not in seen()[1]

    @pytest.mark.parametrize("fault", [cut_before(), cut_after(), s3_error(403, "AccessDenied")])
    async def test_before_the_old_base_is_removed(self, proxied, proxy, seen, fault):
        """A base that could not be removed does no harm, and goes with the next compaction."""
        await change(proxied)
        proxy.inject(fault, lambda request: request.method == "DELETE")
        found = await change(proxied)
        assert proxy.pending() == 0
        assert await proxied.read_many(KIND, KEYS[:20]) == found
        await change(proxied)
        assert len(seen()[1]) == 1


class TestRaces:
    async def test_another_compacts_first(self, proxied, proxy, others, seen):
        """Of two that compact at once one comes first, removes the other's base too, and both changes are made."""
        await change(others)
        await put(proxied, KEYS[30])

        def overtaken(_request, forward):
            then(lambda: change(others))
            return forward()

        proxy.inject(overtaken, puts_of_heads)
        writes = [Write(key, bytes_of(300), None) for key in KEYS[40:60]]
        assert all(result.written for result in await proxied.compare_and_set(KIND, writes))
        assert proxy.pending() == 0
        records, bases = seen()
        assert set(records) == {*KEYS[:20], KEYS[30], *KEYS[40:60]}
        assert {records[key]["version"] for key in KEYS[:20]} == {2}
        assert len(bases) == 1

    async def test_a_refused_head_leaves_no_base(self, proxied, proxy, others, seen):
        """A base that was put for a head that is then refused is removed, though the change then needs none."""
        await change(others)
        found = await change(others, 7)
        before = seen()[1]
        await proxied.create()
        proxy.reset_traffic()

        def overtaken(_request, forward):
            removals = [Write(key, None, record.stamp) for key, record in found.items()]
            then(lambda: others.compare_and_set(KIND, removals))
            return forward()

        proxy.inject(overtaken, puts_of_heads)
        writes = [Write(key, bytes_of(300), None) for key in KEYS[40:47]]
        assert all(result.written for result in await proxied.compare_and_set(KIND, writes))
        assert proxy.traffic["PUT"].requests == 3  # a base and a head, and once more a head
        records, bases = seen()
        assert set(records) == {*KEYS[7:20], *KEYS[40:47]}
        assert bases == before

    async def test_a_base_is_not_put_for_a_head_that_is_stale(self, proxied, proxy, others):
        """Before a base is put, the shard is looked at: others may have changed it."""
        await change(proxied)
        await change_one(others)
        proxy.reset_traffic()
        writes = [Write(key, bytes_of(300), None) for key in KEYS[40:60]]
        assert all(result.written for result in await proxied.compare_and_set(KIND, writes))
        requests = {operation: traffic.requests for operation, traffic in proxy.traffic.items()}
        assert requests == {"GET": 1, "LIST": 1, "PUT": 2, "DELETE": 1}

    async def test_committed_and_built_upon(self, proxied, proxy, others, seen):
        """A compaction whose reply was lost, and on which others built another, is known as done."""
        await change(others)
        proxy.inject(cut_after_and(lambda: change(others)), puts_of_heads)
        writes = [Write(key, bytes_of(300), None) for key in KEYS[40:60]]
        assert all(result.written for result in await proxied.compare_and_set(KIND, writes))
        records, bases = seen()
        assert len(records) == 40
        assert {line["version"] for line in records.values()} == {1, 2}
        assert len(bases) == 1

    async def test_a_late_head_finds_its_base(self, proxied, proxy, others, seen):
        """A head that was given up may yet arrive while its former state is there: its base has been left for it."""
        await change(proxied)
        held = []
        proxy.inject(lambda _request, forward: held.append(forward), puts_of_heads, times=3)
        with pytest.raises(BackendUnavailableError):
            await change(proxied)
        assert [forward().status for forward in held] == [200, 412, 412]
        assert {line["version"] for line in seen()[0].values()} == {2}
        assert len(await others.read_many(KIND, KEYS[:20])) == 20
        await change(others)
        assert len(seen()[1]) == 1

    async def test_a_late_head_is_refused(self, proxied, proxy, others, seen):
        """A head that arrives after another compaction names a base that is gone, so it must be refused."""
        await change(proxied)
        held = []
        proxy.inject(lambda _request, forward: held.append(forward), puts_of_heads)
        found = await change(proxied)
        assert [forward().status for forward in held] == [412]
        assert await others.read_many(KIND, KEYS[:20]) == found
        assert len(seen()[1]) == 1


@pytest.mark.servers
class TestHistoriesOnSeaweedFS(HistoriesOnS3):
    """Histories of clients that race, each change of whom makes a new base."""

    @pytest.fixture
    async def backend(self, seaweedfs, bucket_name, monkeypatch) -> S3Backend:
        """A backend that finds no head small enough, on a new bucket."""
        monkeypatch.setattr("resources.records.s3.shard.SMALL", 0)
        s3_client(seaweedfs.url).create_bucket(Bucket=bucket_name)
        opened = S3Backend(location_of(bucket_name, seaweedfs.url))
        yield opened
        await opened.close()
