"""Shards too large to be put whole: bases, what changed since, and how both are read."""

import random

import pytest

from resources.records.backend import BackendCorruptError, BackendUnavailableError
from resources.records.record import Write
from resources.records.s3 import shard_reader
from resources.records.s3.objects import encode_head
from resources.records.s3.shard import Shard, shard_of
from tests.records.contract import KIND, listed, put
from tests.records.s3_bases import HEAD, KEYS, bytes_of, change, change_one, forget, gets_of_bases
from tests.records.s3_store import line, lines_of, objects_of, pack, then


@pytest.fixture(autouse=True)
def _shards_are_large(aws_credentials, monkeypatch):
    """From 2,000 bytes on. Nothing is sent again by itself."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("resources.records.s3.shard.SMALL", 2_000)


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
