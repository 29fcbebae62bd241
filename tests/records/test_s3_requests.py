"""What the S3 backend asks of a bucket: how often, how much, and how it is spread."""

import asyncio
import random
import secrets
import threading
from collections import Counter
from datetime import timedelta

import pytest

from resources.records.record import Stamp, Write, fresh_write_id
from resources.records.s3 import objects, shard_cache
from resources.records.s3.objects import decode_head, encode_head
from resources.records.s3.s3_backend import S3Backend
from resources.records.s3.shard import Base, Shard, shard_of
from resources.records.s3.shard_cache import Place, ShardCache, Stored
from tests.records.contract import KIND, NOW, listed, put
from tests.records.s3_store import location_of
from tests.servers.faults import HeldRequests, delay, s3_error

SAME_SHARD = [key for key in (f"k{i:05}" for i in range(20_000)) if shard_of(key, 64) == 3]


@pytest.fixture
async def filled(proxied, proxy):
    """Ten records in each of 64 shards, all due; nothing counted yet."""
    keys = [f"k{i:05}" for i in range(4_000)]
    parts = {number: [key for key in keys if shard_of(key, 64) == number][:10] for number in range(64)}
    await proxied.compare_and_set(KIND, [Write(key, b"v" * 500, None, NOW) for part in parts.values() for key in part])
    proxy.reset_traffic()
    return parts


def value(key: str) -> bytes:
    """A value of the size of a document's, two hashes in it."""
    return f'{{"uri":"corpus:reports/{key}.md","a":"{secrets.token_hex(32)}","b":"{"state " * 150}"}}'.encode()


def requests(proxy) -> dict[str, int]:
    """How many requests of each kind were counted; counts from nothing again."""
    counted = {operation: traffic.requests for operation, traffic in proxy.traffic.items()}
    proxy.reset_traffic()
    return counted


class TestGroupCommit:
    async def test_writes_that_wait_together_go_together(self, proxied, proxy):
        """Fifty writes of one shard at once take a PUT for the first, and one or two for all that came meanwhile."""
        await put(proxied, "a")
        proxy.reset_traffic()
        proxy.inject(delay(0.3), lambda request: request.method == "PUT")
        results = await asyncio.gather(
            *(proxied.compare_and_set(KIND, [Write(key, b"", None)]) for key in SAME_SHARD[:50])
        )
        assert all(result.written for [result] in results)
        assert requests(proxy)["PUT"] <= 3
        assert len(await listed(proxied)) == 51

    async def test_threads_and_loops_go_together(self, proxied, proxy):
        """The same for writes that come from many threads, each with a loop of its own."""
        await put(proxied, "a")
        proxy.reset_traffic()
        proxy.inject(delay(0.5), lambda request: request.method == "PUT")
        threads = [threading.Thread(target=lambda key=key: asyncio.run(put(proxied, key))) for key in SAME_SHARD[:20]]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert requests(proxy)["PUT"] <= 4
        assert len(await listed(proxied)) == 21

    async def test_one_of_a_group_wins(self, proxied, proxy):
        """Of writes to one record that go in one PUT the first is written, and the others are refused."""
        stamp = await put(proxied, "a")
        proxy.inject(delay(0.2), lambda request: request.method == "PUT")
        writes = [proxied.compare_and_set(KIND, [Write("a", str(i).encode(), stamp)]) for i in range(20)]
        written = [result.written for [result] in await asyncio.gather(*writes)]
        assert written.count(True) == 1
        assert (await proxied.read(KIND, "a")).value == str(written.index(True)).encode()

    async def test_who_left_writes_nothing(self, proxied, proxy):
        """A write whose caller gave up while it waited is not made, and those beside it are."""
        await put(proxied, "a")
        with HeldRequests() as held:
            proxy.inject(held, lambda request: request.method == "PUT")
            first = asyncio.create_task(put(proxied, SAME_SHARD[0]))
            await held.arrival()
            second, third = (asyncio.create_task(put(proxied, key)) for key in SAME_SHARD[1:3])
            await asyncio.sleep(0.05)
            second.cancel()
        await asyncio.gather(first, third)
        assert [record.key for record in await listed(proxied)] == ["a", SAME_SHARD[0], SAME_SHARD[2]]

    async def test_shards_are_written_side_by_side(self, proxied, filled, proxy):
        """A call that touches many shards takes as long as a few of them."""
        proxy.inject(delay(0.2), lambda request: request.method == "PUT", times=64)
        found = await proxied.read_many(KIND, [part[0] for part in filled.values()])
        async with asyncio.timeout(64 * 0.2 / 3):
            results = await proxied.compare_and_set(KIND, [Write(r.key, b"", r.stamp) for r in found.values()])
        assert all(result.written for result in results)


class TestCosts:
    async def test_a_group_of_one_shard(self, proxied, filled, proxy):
        """Claiming the records of one shard and publishing them twice: a reading without a body, and three PUTs."""
        found = list((await proxied.read_many(KIND, filled[3])).values())
        for _ in range(3):
            writes = [Write(record.key, record.value, record.stamp, NOW) for record in found]
            stamps = [result.stamp for result in await proxied.compare_and_set(KIND, writes)]
            found = [type(r)(r.key, r.value, stamp) for r, stamp in zip(found, stamps, strict=True)]
        assert proxy.traffic["GET"].received < 600
        assert requests(proxy) == {"GET": 1, "PUT": 3}

    async def test_a_conflict_is_tried_again_the_same(self, proxied, filled, proxy):
        """An answer that another request is under way asks for the same PUT again, and for no reading."""
        found = await proxied.read(KIND, filled[3][0])
        proxy.reset_traffic()
        proxy.inject(s3_error(409, "ConditionalRequestConflict"), lambda request: request.method == "PUT", times=2)
        await put(proxied, found.key, b"", found.stamp)
        assert requests(proxy) == {"PUT": 3}

    async def test_unchanged_shards_have_no_body(self, proxied, filled, proxy):
        """Reading a shard again moves no record; a new backend of this process knows it still."""
        await proxied.read(KIND, filled[0][0])
        assert proxy.traffic["GET"].received < 600
        await proxied.close()
        proxy.reset_traffic()
        await proxied.read(KIND, filled[0][0])
        assert proxy.traffic["GET"].received < 1_200
        assert requests(proxy) == {"GET": 2}  # the layout, the shard

    async def test_whole_kinds_cost_a_listing(self, proxied, filled, proxy, moto_url, bucket_name):
        """What concerns all records is one listing and a reading of each shard that changed."""
        for question in (
            listed(proxied),
            proxied.list_keys(KIND, [""]),
            proxied.list_open(KIND),
            proxied.list_due(KIND, NOW, 5),
            proxied.count_labels(KIND),
            proxied.list_kinds(),
        ):
            await question
            assert requests(proxy) == {"LIST": 1}
        other = S3Backend(location_of(bucket_name, moto_url))
        for number in (3, 5):
            await put(other, filled[number][0], b"", (await other.read(KIND, filled[number][0])).stamp)
        await other.close()
        assert (await proxied.count_labels(KIND)) == {"": 640}
        assert requests(proxy) == {"LIST": 1, "GET": 2}

    async def test_one_cold_reading_of_all(self, proxied, filled, proxy, monkeypatch):
        """A process that knows nothing reads each shard once."""
        monkeypatch.setattr(proxied._opening.reader, "_cache", ShardCache(10_000_000))
        assert len(await listed(proxied)) == 640
        assert requests(proxy) == {"LIST": 1, "GET": 64}

    async def test_refusals_are_never_from_memory(self, proxied, filled, proxy, moto_url, bucket_name):
        """A write that the remembered shard would refuse is tried on the shard as it is."""
        key = filled[3][0]
        seen = await proxied.read(KIND, key)
        other = S3Backend(location_of(bucket_name, moto_url))
        assert (await other.compare_and_set(KIND, [Write(key, None, seen.stamp)]))[0].written
        await other.close()
        assert (await proxied.compare_and_set(KIND, [Write(key, b"new", None)]))[0].written
        assert not (await proxied.compare_and_set(KIND, [Write(key, b"", seen.stamp)]))[0].written


class TestLargeShards:
    """Shards as large as those of 100,000 documents in 64."""

    STEPS = 3  # claimed, extracted, built

    @pytest.fixture
    async def documents(self, proxied, proxy):
        """Two shards of 1,500 documents each, none of them incompressible; nothing counted yet."""
        await proxied.create(shards=2)
        keys = [f"k{number:05}" for number in range(3_000)]
        await proxied.compare_and_set(KIND, [Write(key, value(key), None, NOW) for key in keys])
        proxy.reset_traffic()
        return keys

    async def way_of(self, backend, keys) -> None:
        """Change records as often as a run does."""
        for _ in range(self.STEPS):
            found = await backend.read_many(KIND, keys)
            writes = [Write(key, value(key), record.stamp, NOW) for key, record in found.items()]
            assert all(result.written for result in await backend.compare_and_set(KIND, writes))

    @pytest.mark.parametrize(("together", "rounds", "kilobytes"), [(32, 60, 6), (400, 6, 3)])
    async def test_bytes_and_requests(self, proxied, documents, proxy, together, rounds, kilobytes):
        """A document costs a few KB and a fraction of a request, whether few of a shard are changed at once or many."""
        chosen = random.Random(3)
        for _ in range(rounds):
            await self.way_of(proxied, chosen.sample(documents, together))
        assert proxy.traffic["LIST"].requests > 0  # there were compactions
        assert sum(seen.sent for seen in proxy.traffic.values()) < rounds * together * kilobytes * 1_000
        assert sum(seen.requests for seen in proxy.traffic.values()) < rounds * together

    async def test_a_change_encodes_what_changed(self, proxied, documents, monkeypatch):
        """Changing a few records makes no text of the others."""
        await proxied.read_many(KIND, documents)
        encoded = []
        encode = objects.encode_lines
        monkeypatch.setattr(objects, "encode_lines", lambda lines: encoded.append(len(lines)) or encode(lines))
        await self.way_of(proxied, documents[:10])
        assert sum(encoded) == self.STEPS * 10


class TestDueTogether:
    async def test_askers_are_led_apart(self, proxied, filled, proxy):
        """Each asker gets records of one shard, or of as few as hold enough; askers rarely meet."""
        starts = Counter()
        for asker in map(str, range(30)):
            found = await proxied.list_due_together(KIND, NOW, 10, asker)
            [number] = {shard_of(key, 64) for key in found}
            assert found == filled[number]
            starts[number] += 1
            more = await proxied.list_due_together(KIND, NOW, 35, asker)
            assert len(more) == 35
            assert len({shard_of(key, 64) for key in more}) == 4
        assert len(starts) > 15

    async def test_shards_with_nothing_due_are_passed(self, proxied, filled):
        """The way leads on to where something is due, in the order in which it became so."""
        only = filled[40][:2]
        writes = []
        for record in (await proxied.read_many(KIND, [key for part in filled.values() for key in part])).values():
            due = NOW - timedelta(only.index(record.key)) if record.key in only else None
            writes.append(Write(record.key, b"", record.stamp, due))
        await proxied.compare_and_set(KIND, writes)
        for asker in ("a", "b", "c"):
            assert await proxied.list_due_together(KIND, NOW, 10, asker) == only[::-1]
        assert await proxied.list_due_together(KIND, NOW - timedelta(9), 10, "a") == []

    async def test_neighbours_share_a_shard(self, proxied, filled):
        """Keys in parts stand shard by shard."""
        keys = [part[i] for i in range(10) for part in filled.values()]
        numbers = [shard_of(key, 64) for key in proxied.in_parts(KIND, keys)]
        assert numbers == sorted(numbers)


class TestShard:
    def test_an_own_write_below_others_is_found(self):
        """A write that is in the shard already, below those of others, is done and changes nothing."""
        ours = (Write("a", b"1", None), Stamp.after(None, fresh_write_id()))
        theirs = (Write("a", b"2", ours[1]), Stamp.after(ours[1], fresh_write_id()))
        mine, _ = Shard({}).changed([ours])
        later, _ = mine.changed([theirs])
        assert later.changed([ours]) == (None, [True])
        assert Shard({}).changed([ours])[0].changed([theirs, ours])[1] == [True, True]

    def test_the_last_changes_are_remembered(self):
        """An object names its last sixteen changes, the newest first, and forgets those before."""
        shard, ids, stamp = Shard({}), [], None
        for _ in range(20):
            following = Stamp.after(stamp, fresh_write_id())
            shard, _ = shard.changed([(Write("a", b"1", stamp), following)])
            stamp = following
            ids.insert(0, shard.changes[0])
        read = decode_head(encode_head(shard), 3, 64)
        assert list(read.changes) == ids[:16]
        assert len(set(ids)) == 20


def of_500() -> Shard:
    """A shard of 500 bytes of text."""
    return Shard({}, base=Base("b", {}, 500, 100), delta={})


class TestCache:
    def test_it_is_bounded(self):
        """The shards used last stay, up to a total of text."""
        cache = ShardCache(10 * (500 + shard_cache._FIXED_COST))
        for number in range(15):
            cache.put(Place("u", "k", number), Stored(str(number), of_500()))
            cache.get(Place("u", "k", 0))
        kept = [number for number in range(15) if cache.get(Place("u", "k", number))]
        assert kept == [0, *range(6, 15)]

    def test_what_is_put_again_counts_once(self):
        """A shard that changes takes the place of its former self."""
        cache = ShardCache(3 * (500 + shard_cache._FIXED_COST))
        for number in (1, 2, 3, 3, 3, 3):
            cache.put(Place("u", "k", number), Stored("", of_500()))
        assert all(cache.get(Place("u", "k", number)) for number in (1, 2, 3))
