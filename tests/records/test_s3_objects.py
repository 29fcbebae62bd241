"""What the S3 backend writes, read around it; and what it says of objects that are not as it writes them."""

import io
import json

import pytest
import zstandard

from resources.records.backend import BackendCorruptError, WrongOptionError
from resources.records.record import Stamp, Write
from resources.records.s3 import packing
from resources.records.s3.layout import object_of, shard_named
from resources.records.s3.s3_backend import S3Backend
from resources.records.s3.shard import shard_of
from resources.records.uri import open_backend
from tests.records.contract import HOSTILE_KEYS, KIND, NOW, listed, put
from tests.records.s3_store import line, lines_of, location_of, objects_of, pack

A = f"state/thing/{shard_of('a', 64):03}.jsonl.zst"
ONE_LINE_OF_JSON = [b'{"a": 1}', b'{"a":[1,2.50,null,"\\u00fc"]}', b'"\xc3\xbc"', b"1e3", b"{}", b'{"a":1,"a":2}']
ANYTHING_ELSE = [
    b"",
    b"\x00\xff",
    b' {"a": 1}',
    b'{"a": 1}\n',
    b'{"a":\n1}',
    b'{"a":\r1}',
    b'1,"key":"b"',
    b'1}\n{"key":"b"',
    b'"\xff"',
    b"NaN",
    b"1e999",
    b"[" * 5_000 + b"]" * 5_000,
]


class TestWritten:
    async def test_a_store_is_a_format_and_shards(self, s3, raw, bucket_name):
        """Beside the layout there is an object for each shard that has been written, and no other."""
        await put(s3, "a")
        await s3.compare_and_set("job/x", [Write("a", b"", None)])
        objects = objects_of(raw, bucket_name)
        assert set(objects) == {"state/format.json", A, A.replace("thing", "job%2Fx")}
        assert json.loads(objects["state/format.json"]) == {"format": 1, "shards": 64}

    async def test_lines_are_what_was_written(self, s3, raw, bucket_name):
        """A line holds key, value, stamp and hints by any JSON reader's account; what is empty is left out."""
        stamp = await put(s3, "a", b'{"n": 1}', due_at=NOW, label="red", open=True)
        micros = int(NOW.timestamp()) * 1_000_000 + NOW.microsecond
        [found] = lines_of(objects_of(raw, bucket_name)[A])
        hints = {"due": micros, "label": "red", "open": True}
        assert found == {"key": "a", "version": 1, "write_id": stamp.write_id, **hints, "value": {"n": 1}}
        second = await put(s3, "a", b"\x00", stamp)
        [found] = lines_of(objects_of(raw, bucket_name)[A])
        assert found == {"key": "a", "version": 2, "write_id": second.write_id, "base64": "AA=="}

    @pytest.mark.parametrize("value", ONE_LINE_OF_JSON + ANYTHING_ELSE)
    async def test_values_come_back_byte_for_byte(self, s3, raw, bucket_name, value):
        """One line of JSON stands in the line as it is, anything else in base64; both are read as they were written."""
        await put(s3, "a", value)
        other = S3Backend(location_of(bucket_name, raw.meta.endpoint_url, "state/"))
        text = zstandard.ZstdDecompressor().decompress(objects_of(raw, bucket_name)[A])
        assert text.count(b"\n") == 1
        assert (value in text and b'"value":' in text) == (value in ONE_LINE_OF_JSON)
        assert (await other.read(KIND, "a")).value == value
        await other.close()

    async def test_lines_are_sorted_and_in_their_shard(self, raw, moto_url, bucket_name):
        """Each object holds the keys of its shard in ascending order, and together they hold all."""
        backend = S3Backend(location_of(bucket_name, moto_url, ""))
        await backend.create(shards=7)
        keys = [f"k{i:04}" for i in range(500)] + list(HOSTILE_KEYS)
        await backend.compare_and_set(KIND, [Write(key, b"1", None) for key in keys[::2]])
        await backend.compare_and_set(KIND, [Write(key, b"1", None) for key in keys[1::2]])
        found = []
        for name, body in objects_of(raw, bucket_name).items():
            if name != "format.json":
                there = [line["key"] for line in lines_of(body)]
                assert there == sorted(there)
                assert {object_of(KIND, shard_of(key, 7)) for key in there} == {name}
                found += there
        assert sorted(found) == sorted(keys)
        await backend.close()

    async def test_no_state_of_a_shard_comes_back(self, s3, raw, bucket_name):
        """A shard whose records are again what they were is another object: an ETag never returns."""
        await put(s3, "a", b"1")
        etags = set()
        for _ in range(3):
            etags.add(raw.head_object(Bucket=bucket_name, Key=A)["ETag"])
            before = lines_of(objects_of(raw, bucket_name)[A])
            same_shard = next(key for key in map(str, range(9_999)) if shard_of(key, 64) == shard_of("a", 64))
            stamp = await put(s3, same_shard)
            await s3.compare_and_set(KIND, [Write(same_shard, None, stamp)])
            assert lines_of(objects_of(raw, bucket_name)[A]) == before
        assert len(etags) == 3

    def test_shards_are_stable(self):
        """A key falls into the same shard for ever, or no store could be read again."""
        assert [shard_of(key, 64) for key in ("a", "ü", "document-1")] == [3, 21, 13]
        counts = [0] * 64
        for i in range(6_400):
            counts[shard_of(f"d{i:05}", 64)] += 1
        assert min(counts) > 60
        assert max(counts) < 150

    @pytest.mark.parametrize("kind", ["thing", "job/x", "é", "a b%", "x/000.jsonl.zst"])
    def test_names_lead_back(self, kind):
        """The kind and shard are read from an object's name; a name that is not quite ours is nobody's."""
        assert shard_named(object_of(kind, 7)) == (kind, 7)
        for name in (f"{kind}/x.jsonl.zst", "thing/7.jsonl.zst", "thing/007.jsonl", "format.json", "a/b/007.jsonl.zst"):
            assert shard_named(name) is None


class TestLayout:
    async def test_reading_makes_nothing(self, s3, raw, bucket_name):
        """Who only reads a store that is not there needs no permission to write, and leaves no trace."""
        assert await s3.read(KIND, "a") is None
        assert await s3.list_due_together(KIND, NOW, 5, "me") == []
        assert await listed(s3) == []
        assert objects_of(raw, bucket_name) == {}

    async def test_creating_is_safe_to_repeat(self, s3, raw, moto_url, bucket_name):
        """Making a store again is nothing, with the same number of shards or none given; another number is an error."""
        for shards in (16, 16, None):
            await s3.create(shards=shards)
        with pytest.raises(WrongOptionError, match="has 16 shards and cannot get 64"):
            await s3.create(shards=64)
        other = S3Backend(location_of(bucket_name, moto_url))
        await put(other, "a")
        assert f"state/thing/{shard_of('a', 16):03}.jsonl.zst" in objects_of(raw, bucket_name)
        await other.close()

    @pytest.mark.parametrize("shards", [0, -1, 257])
    async def test_impossible_numbers_of_shards(self, s3, shards):
        """A number of shards is 1 to 256."""
        with pytest.raises(WrongOptionError, match="1 to 256"):
            await s3.create(shards=shards)

    async def test_newer_format_is_refused(self, s3, raw, bucket_name):
        """A store of a later version is neither read nor written."""
        body = b'{"format": 2, "shards": "many"}'
        raw.put_object(Bucket=bucket_name, Key="state/format.json", Body=body)
        for call in (s3.read(KIND, "a"), s3.compare_and_set(KIND, [Write("a", b"", None)]), s3.create()):
            with pytest.raises(BackendCorruptError, match="Upgrade"):
                await call
        assert objects_of(raw, bucket_name) == {"state/format.json": body}

    @pytest.mark.parametrize("body", [b"", b"{}", b"junk", b'{"format": 1, "shards": 0}', b"\xff"])
    async def test_damaged_layout(self, s3, raw, bucket_name, body):
        """A layout that cannot be read is not taken for a missing one."""
        raw.put_object(Bucket=bucket_name, Key="state/format.json", Body=body)
        with pytest.raises(BackendCorruptError, match=r"format\.json"):
            await put(s3, "a")
        assert objects_of(raw, bucket_name)["state/format.json"] == body

    async def test_shards_without_a_layout_are_no_empty_store(self, s3, raw, bucket_name):
        """A store that lost its layout is neither read as empty nor laid out anew with another number of shards."""
        await put(s3, "a")
        await s3.close()
        raw.delete_object(Bucket=bucket_name, Key="state/format.json")
        before = objects_of(raw, bucket_name)
        for call in (s3.read(KIND, "a"), s3.compare_and_set(KIND, [Write("b", b"", None)]), s3.create(), listed(s3)):
            with pytest.raises(BackendCorruptError, match=r"format\.json is gone"):
                await call
        assert objects_of(raw, bucket_name) == before

    async def test_closed_backend_opens_anew(self, s3):
        """After closing, a later use opens what it needs and sees everything."""
        await put(s3, "a")
        await s3.close()
        assert [record.key for record in await listed(s3)] == ["a"]

    async def test_uri_opens_it(self, s3, tmp_path):
        """The URI that names a store opens it."""
        await put(s3, "a")
        again = open_backend(s3.uri, tmp_path)
        assert (await again.read(KIND, "a")).value == b"v"
        await again.close()


def bomb() -> bytes:
    """A small object that says to unpack to more than anybody wants."""
    packed = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(packed, size=packing.LARGEST + 1, closefd=False) as writer:
        for _ in range(packing.LARGEST // (1 << 20)):
            writer.write(bytes(1 << 20))
        writer.write(b"\0")
    return packed.getvalue()


def unsized() -> bytes:
    """An object that does not say to how much it unpacks."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 100)


DAMAGED = {
    "not zstd": (b"junk", "not whole"),
    "empty": (b"", "not whole"),
    "cut": (pack(*[line(f"{i}" * 50) for i in range(50)])[:-20], "not whole"),
    "no JSON": (
        zstandard.ZstdCompressor().compress(b'{"key":"a","version":1,"write_id":"w","value":1}\njunk'),
        "line 2",
    ),
    "no value": (pack({"key": "a", "version": 1, "write_id": "w"}), "line 1, record 'a'"),
    "two values": (pack(line(base64="")), "record 'a'"),
    "wrong type": (pack(line(version="1")), "record 'a'.*version"),
    "unknown field": (pack(line(new=1)), "record 'a'.*new"),
    "newer line": (pack(line(), line("b", format=2, new=1)), "record 'b': it has format 2.*Upgrade"),
    "strange format": (pack(line(format=0)), "record 'a'.*format 0"),
    "twice": (pack(line(), line()), "line 2, record 'a'.*order"),
    "other shard": (pack(line("b")), f"record 'b'.*shard {shard_of('b', 64)}"),
    "unsized": (unsized(), "-1"),
}


class TestDamaged:
    @pytest.fixture
    async def damaged(self, s3, raw, bucket_name, request):
        """A store with a shard that somebody damaged."""
        await put(s3, "a")
        raw.put_object(Bucket=bucket_name, Key=A, Body=request.param[0])
        return request.param

    @pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED, indirect=True)
    async def test_damage_is_told_and_kept(self, s3, raw, bucket_name, damaged):
        """A shard that cannot be read whole is an error that names store, object and line, and stays as it is."""
        body, said = damaged
        for call in (
            s3.read(KIND, "a"),
            s3.compare_and_set(KIND, [Write("a", b"", None)]),
            listed(s3),
            s3.list_due_together(KIND, NOW, 1, "me"),
        ):
            with pytest.raises(BackendCorruptError, match=said) as raised:
                await call
            assert A.removeprefix("state/") in str(raised.value)
            assert s3.uri in str(raised.value)
        assert objects_of(raw, bucket_name)[A] == body

    async def test_a_bomb_is_not_unpacked(self, s3, raw, bucket_name):
        """What would unpack to more than a shard may hold is refused."""
        await put(s3, "a")
        raw.put_object(Bucket=bucket_name, Key=A, Body=bomb())
        with pytest.raises(BackendCorruptError, match="at most"):
            await s3.read(KIND, "a")

    async def test_a_shard_that_the_layout_does_not_have(self, s3, raw, bucket_name):
        """An object of a shard beyond the layout's number is told, not passed over."""
        await put(s3, "a")
        raw.put_object(Bucket=bucket_name, Key="state/thing/064.jsonl.zst", Body=pack())
        with pytest.raises(BackendCorruptError, match="064"):
            await listed(s3)

    async def test_another_program_may_write(self, s3, raw, bucket_name):
        """A shard that another program wrote, without our tail, is read and changed like ours."""
        await put(s3, "a")
        raw.put_object(Bucket=bucket_name, Key=A, Body=pack(line(label="theirs", due=1)))
        found = await s3.read(KIND, "a")
        assert (found.value, found.stamp, found.label) == (b"1", Stamp(1, "w"), "theirs")
        await put(s3, "a", b"2", found.stamp)
        assert lines_of(objects_of(raw, bucket_name)[A])[0]["value"] == 2

    async def test_a_vanished_shard(self, s3, raw, bucket_name):
        """A shard whose object somebody removed has no records; changes of them are refused, new ones are written."""
        stamp = await put(s3, "a")
        raw.delete_object(Bucket=bucket_name, Key=A)
        [refused] = await s3.compare_and_set(KIND, [Write("a", b"2", stamp)])
        assert (refused.written, refused.stamp) == (False, None)
        assert await s3.read(KIND, "a") is None
        await put(s3, "a", b"3")
        raw.delete_object(Bucket=bucket_name, Key=A)
        await put(s3, "a", b"4")
        assert [record.value for record in await listed(s3)] == [b"4"]

    async def test_a_vanished_store(self, s3, raw, bucket_name):
        """Where the layout went too, nothing is written until somebody has looked."""
        await put(s3, "a")
        for name in objects_of(raw, bucket_name):
            raw.delete_object(Bucket=bucket_name, Key=name)
        with pytest.raises(BackendCorruptError, match=r"format\.json is gone"):
            await put(s3, "a")
        assert objects_of(raw, bucket_name) == {}
        await s3.close()
        await put(s3, "a")
        assert len(objects_of(raw, bucket_name)) == 2
