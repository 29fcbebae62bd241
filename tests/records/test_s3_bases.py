"""Shards too large to be put whole: bases, what changed since, and every moment at which a compaction can end."""

import random
import secrets

import pytest

from resources.records.backend import BackendCorruptError, BackendUnavailableError
from resources.records.record import Record, Write
from resources.records.s3 import shard_reader
from resources.records.s3.objects import encode_head
from resources.records.s3.s3_backend import S3Backend
from resources.records.s3.shard import Shard, shard_of
from resources.records.s3.shard_cache import ShardCache
from tests.linearizability.test_histories_on_s3 import HistoriesOnS3
from tests.records.contract import KIND, listed, put
from tests.records.s3_store import (
    cut_after_and,
    is_base,
    line,
    lines_of,
    location_of,
    objects_of,
    pack,
    records_of,
    then,
)
from tests.servers.clients import s3_client
from tests.servers.faults import cut_after, cut_before, s3_error

HEAD = f"state/thing/{shard_of('a', 64):03}.jsonl.zst"
KEYS = ["a", *(key for key in (f"k{i:05}" for i in range(5_000)) if shard_of(key, 64) == shard_of("a", 64))]
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


def bytes_of(size: int) -> bytes:
    """A value that cannot be packed much."""
    return b'"' + secrets.token_hex(size // 2).encode() + b'"'


async def change(backend: S3Backend, n: int = 20, size: int = 300) -> dict[str, Record]:
    """Change or make the first n records in one call, enough for a base of their own; the records."""
    before = await backend.read_many(KIND, KEYS[:n])
    stamps = {key: record.stamp for key, record in before.items()}
    results = await backend.compare_and_set(KIND, [Write(key, bytes_of(size), stamps.get(key)) for key in KEYS[:n]])
    assert all(result.written for result in results)
    return await backend.read_many(KIND, KEYS[:n])


async def change_one(backend: S3Backend, key: str = "a") -> Record:
    """Change one record, too little for a base."""
    found = await backend.read(KIND, key)
    await put(backend, key, b'"small"', found.stamp if found else None)
    return await backend.read(KIND, key)


async def forget(backend: S3Backend, monkeypatch) -> None:
    """Let a backend know nothing of what it has seen, as another process would."""
    await backend.create()
    monkeypatch.setattr(backend._opening.reader, "_cache", ShardCache(10_000_000))


def puts_of_bases(request) -> bool:
    """Whether a request puts a base."""
    return request.method == "PUT" and is_base(request.path)


def puts_of_heads(request) -> bool:
    """Whether a request puts the head."""
    return request.method == "PUT" and request.path.endswith(HEAD)


def gets_of_bases(request) -> bool:
    """Whether a request reads a base."""
    return request.method == "GET" and is_base(request.path)


class TestObjects:
    async def test_a_small_shard_is_one_object(self, s3, seen):
        """What is small has no base, whatever becomes of it."""
        for _ in range(20):
            await change(s3, 2)
        assert seen()[1] == []

    async def test_a_large_one_is_a_base_and_what_changed(self, s3, raw, bucket_name, seen):
        """Changes of a large shard stand in its head, and the base stays as it is."""
        before = await change(s3)
        _, bases = seen()
        assert len(bases) == 1
        size = raw.head_object(Bucket=bucket_name, Key=HEAD)["ContentLength"]
        await change_one(s3)
        assert seen()[1] == bases
        assert [found["key"] for found in lines_of(objects_of(raw, bucket_name)[HEAD])[1:]] == ["a"]
        assert raw.head_object(Bucket=bucket_name, Key=HEAD)["ContentLength"] < size + 150
        assert set(seen()[0]) == set(before)

    async def test_what_is_removed_stays_removed(self, s3, others, monkeypatch, raw, bucket_name):
        """A record that the base has is named as removed; one that came later just goes; one can come back."""
        found = await change(s3)
        later = await put(s3, KEYS[30])
        await s3.compare_and_set(KIND, [Write("a", None, found["a"].stamp), Write(KEYS[30], None, later)])
        top, *lines = lines_of(objects_of(raw, bucket_name)[HEAD])
        assert (top["removed"], lines) == (["a"], [])
        assert await others.read(KIND, "a") is None
        await forget(others, monkeypatch)
        assert [record.key for record in await listed(others)] == sorted(KEYS[1:20])
        stamp = await put(others, "a", b"again")
        await forget(others, monkeypatch)
        assert (await others.read(KIND, "a")).stamp == stamp
        assert lines_of(objects_of(raw, bucket_name)[HEAD])[0]["removed"] == []

    async def test_any_course_of_changes(self, s3, others, seen, monkeypatch):
        """Whatever is made, changed and removed by two writers, every reader sees it, and one base is left."""
        chosen = random.Random(7)
        expected: dict[str, bytes] = {}
        await forget(others, monkeypatch)
        for turn in range(120):
            backend = chosen.choice([s3, others])
            writes = []
            for key in chosen.sample(KEYS[:40], chosen.randrange(1, 6)):
                found = await backend.read(KIND, key)
                value = None if found and chosen.random() < 0.4 else bytes_of(200)
                writes.append(Write(key, value, found.stamp if found else None))
            assert all(result.written for result in await backend.compare_and_set(KIND, writes))
            expected |= {write.key: write.value for write in writes}
            if turn % 20 == 0:
                await forget(chosen.choice([s3, others]), monkeypatch)
        expected = {key: value for key, value in expected.items() if value is not None}
        for backend in (s3, others):
            assert {record.key: record.value for record in await listed(backend)} == expected
        records, bases = seen()
        assert set(records) == set(expected)
        assert len(bases) == 1

    async def test_a_shard_becomes_small_again(self, s3, seen):
        """When little is left, the shard is one object again."""
        found = await change(s3, 150)
        await s3.compare_and_set(KIND, [Write(key, None, record.stamp) for key, record in list(found.items())[3:]])
        assert set(seen()[0]) == set(list(found)[:3])
        for _ in range(5):
            await change(s3, 3, 980)
        assert seen()[1] == []
        assert len(await listed(s3)) == 3

    async def test_a_large_head_of_an_earlier_version(self, s3, others, raw, bucket_name, seen):
        """A shard without a base that is large already is read, and gets one when it is changed."""
        await change(others)
        body = encode_head(Shard(others._opening.reader.last_seen(KIND, shard_of("a", 64)).shard.lines))
        raw.put_object(Bucket=bucket_name, Key=HEAD, Body=body)
        assert len(await listed(s3)) == 20
        await change_one(s3)
        records, bases = seen()
        assert (len(records), len(bases)) == (20, 1)

    async def test_what_is_not_ours_is_left(self, s3, raw, bucket_name):
        """A compaction removes bases of its shard alone: nobody's copies, and no other shard's."""
        names = [
            HEAD.replace("003.", "003-backup."),
            HEAD.replace("003.", "003-0123456789abcdef.bak."),
            HEAD.replace("003.", "004-0123456789abcdef."),
        ]
        for name in names:
            raw.put_object(Bucket=bucket_name, Key=name, Body=b"")
        for _ in range(3):
            await change(s3)
        assert set(names) < set(objects_of(raw, bucket_name))
        assert await s3.list_kinds() == [KIND]


class TestReading:
    async def test_a_base_is_read_once(self, proxied, proxy, others, monkeypatch):
        """Of a shard that others change, the head alone is read again; the base only when it is another."""
        await change(others)
        await proxied.read(KIND, "a")
        for _ in range(3):
            await change_one(others)
            proxy.reset_traffic()
            await proxied.read(KIND, "a")
            assert proxy.traffic["GET"].requests == 1
        await change(others)
        proxy.reset_traffic()
        await proxied.read(KIND, "a")
        assert proxy.traffic["GET"].requests == 2

    async def test_a_base_that_goes_while_the_head_is_read(self, proxied, proxy, others, monkeypatch):
        """Who has read a head whose base is then replaced reads again, and sees the newer records."""
        await change(others)

        def compacted(_request, forward):
            then(lambda: change(others))
            return forward()

        proxy.inject(compacted, gets_of_bases, times=2)
        found = await proxied.read(KIND, "a")
        assert proxy.pending() == 0
        assert found == await others.read(KIND, "a")

    async def test_reading_again_has_an_end(self, proxied, proxy, others, monkeypatch):
        """If the base is always replaced before it is read, that is told as an outage."""
        monkeypatch.setattr(shard_reader, "_READINGS", 3)
        await change(others)

        def compacted(_request, forward):
            then(lambda: change(others))
            return forward()

        proxy.inject(compacted, gets_of_bases, times=100)
        with pytest.raises(BackendUnavailableError, match="thing/003"):
            await proxied.read(KIND, "a")

    async def test_a_base_that_is_gone(self, s3, others, raw, bucket_name, seen, monkeypatch):
        """A head whose base somebody removed cannot be read: base and head are named, and nothing is written."""
        await change(others)
        [base] = seen()[1]
        raw.delete_object(Bucket=bucket_name, Key=base)
        await forget(s3, monkeypatch)
        before = objects_of(raw, bucket_name)
        for call in (s3.read(KIND, "a"), listed(s3), s3.compare_and_set(KIND, [Write("a", b"", None)])):
            with pytest.raises(BackendCorruptError) as raised:
                await call
            for name in (base, HEAD, s3.uri):
                assert name.removeprefix("state/") in str(raised.value)
        assert objects_of(raw, bucket_name) == before

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"junk", "not whole"),
            (pack(line("a"), line("a")), "line 2, record 'a'.*order"),
            (pack(line("b")), "belongs into shard"),
            (pack(line("a", format=3)), "record 'a': it has format 3.*Upgrade"),
        ],
    )
    async def test_a_damaged_base(self, s3, raw, bucket_name, others, seen, body, said, monkeypatch):
        """A base that cannot be read whole is named, with its line, and nothing is written."""
        await change(others)
        [base] = seen()[1]
        raw.put_object(Bucket=bucket_name, Key=base, Body=body)
        await forget(s3, monkeypatch)
        before = objects_of(raw, bucket_name)
        for call in (s3.read(KIND, "a"), s3.compare_and_set(KIND, [Write("a", b"", None)])):
            with pytest.raises(BackendCorruptError, match=said) as raised:
                await call
            assert base.removeprefix("state/") in str(raised.value)
        assert objects_of(raw, bucket_name) == before

    @pytest.mark.parametrize(
        ("top", "said"),
        [
            ({"base": "BASE", "removed": [], "format": 3, "new": 1}, "line 1: it has format 3.*Upgrade"),
            ({"base": "BASE", "removed": [], "format": 1}, "line 1.*format 1"),
            ({"base": "BASE", "removed": []}, "line 1"),
            ({"base": "BASE", "removed": [], "format": 2, "new": 1}, "line 1.*new"),
            ({"base": "BASE", "removed": 7, "format": 2}, "line 1.*removed"),
            ({"base": "../../other", "removed": [], "format": 2}, "line 1.*other"),
            ({"base": "BASE", "removed": ["b"], "format": 2}, "line 1.*'b'"),
            ({"base": "BASE", "removed": ["a"], "format": 2}, "line 1.*'a'"),
        ],
    )
    async def test_a_damaged_head(self, s3, raw, bucket_name, seen, top, said):
        """A head that says nothing sensible of its base is not read, nor written over."""
        await change(s3)
        [base] = seen()[1]
        body = pack(top | {"base": top["base"].replace("BASE", base[-26:-10])}, line("a"))
        raw.put_object(Bucket=bucket_name, Key=HEAD, Body=body)
        for call in (s3.read(KIND, "a"), s3.compare_and_set(KIND, [Write("a", b"", None)])):
            with pytest.raises(BackendCorruptError, match=said) as raised:
                await call
            assert "thing/003.jsonl.zst" in str(raised.value)
        assert objects_of(raw, bucket_name)[HEAD] == body

    async def test_an_earlier_version_refuses_it(self, s3, raw, bucket_name):
        """The first line of a head with a base is no record, so whoever knows no bases takes it for no shard."""
        await change(s3)
        [top] = lines_of(objects_of(raw, bucket_name)[HEAD])
        assert "key" not in top
        assert top["format"] == 2


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
