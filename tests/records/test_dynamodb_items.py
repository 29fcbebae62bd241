"""What lies in the table, read around the backend; and what cannot lie there or cannot be read."""

import itertools
from datetime import UTC, datetime

import pytest

from resources.records.backend import BackendCorruptError, RecordTooLargeError
from resources.records.dynamodb.item import LONGEST_KEY, LONGEST_KIND, MOST_BYTES, buckets_of, due_text, end_of_due
from resources.records.record import DueKey, Stamp, Write
from tests.records.contract import HOSTILE_KEYS, KIND, MICROSECOND, NOW, listed, put
from tests.records.dynamodb_tables import new_table
from tests.servers.clients import dynamodb_client


@pytest.fixture
async def backend(moto_url, table_prefix):
    async with new_table(moto_url, table_prefix) as opened:
        yield opened


@pytest.fixture
def client(moto_url):
    return dynamodb_client(moto_url)


@pytest.fixture
def table(backend, table_prefix):
    return f"{table_prefix}records"


def raw(client, table, index=None):
    """All items, by the server's own account."""
    return client.scan(TableName=table, ConsistentRead=not index, **({"IndexName": index} if index else {}))["Items"]


def damage(client, table, attribute, value):
    """Put another value, or none, into an attribute of the only item."""
    [item] = raw(client, table)
    item.pop(attribute)
    client.put_item(TableName=table, Item=item | ({attribute: value} if value else {}))


class TestItems:
    async def test_an_item_is_what_was_written(self, backend, client, table):
        """An item holds key, value, stamp, label and format, and where it is due and open what the indexes need."""
        stamp = await put(backend, "ä", b"\x00v", due_at=NOW, label="red", open=True)
        assert raw(client, table) == [
            {
                "bucket": {"S": "thing#03"},
                "key": {"S": "ä"},
                "value": {"B": b"\x00v"},
                "version": {"N": "1"},
                "write_id": {"S": stamp.write_id},
                "label": {"S": "red"},
                "format": {"N": "1"},
                "due": {"S": "2026-01-02T03:04:05.678901Zä"},
                "open_bucket": {"S": "thing#03"},
            }
        ]

    async def test_indexes_hold_only_what_is_due_or_open(self, backend, client, table):
        """A record leaves an index with the write that makes it neither due nor open."""
        stamps = [await put(backend, key, due_at=NOW, label="l", open=True) for key in ("a", "b")]
        await put(backend, "c")
        await put(backend, "a", b"", stamps[0])
        assert [set(item) for item in raw(client, table, "due")] == [{"bucket", "key", "due"}]
        assert [set(item) for item in raw(client, table, "open")] == [
            {"bucket", "key", "open_bucket", "label", "format"}
        ]
        assert [item["key"]["S"] for item in raw(client, table, "due") + raw(client, table, "open")] == ["b", "b"]

    async def test_a_removed_record_leaves_nothing(self, backend, client, table):
        """No item stays behind to say that something was there."""
        stamp = await put(backend, "a", due_at=NOW, open=True)
        await backend.compare_and_set(KIND, [Write("a", None, stamp)])
        assert raw(client, table) == raw(client, table, "due") == raw(client, table, "open") == []

    async def test_records_are_spread(self, backend, client, table):
        """A kind lies in sixteen buckets of about one size, a kind with a slash like any other."""
        kind = "job_result/7"
        await backend.compare_and_set(kind, [Write(f"k{i}", b"", None) for i in range(320)])
        sizes = dict.fromkeys(buckets_of(kind), 0)
        for item in raw(client, table):
            sizes[item["bucket"]["S"]] += 1
        assert len(sizes) == 16
        assert min(sizes.values()) > 5
        assert max(sizes.values()) < 40

    def test_due_texts_sort_as_time_and_key_do(self):
        """Text order is (time, key), from year 1 to 9999, and the end of a moment lies behind its last key."""
        moments = [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), NOW]
        moments += [NOW + MICROSECOND, datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
        keys = [*HOSTILE_KEYS, "\U0010ffff" * 9]
        ordered = [DueKey(moment, key) for moment in moments for key in sorted(keys)]
        texts = [due_text(due.due_at, due.key).encode() for due in ordered]
        assert texts == sorted(texts)
        for moment, later in itertools.pairwise(moments):
            end = end_of_due(moment).encode()
            assert max(due_text(moment, key).encode() for key in keys) < end < due_text(later, "\0").encode()


class TestTooLarge:
    async def test_a_record_that_fits(self, backend):
        """A record up to DynamoDB's limit is written and read whole, and more than an answer holds in parts."""
        value = b"x" * 400_000
        writes = [Write(f"k{i}", value, None) for i in range(50)]
        assert all(result.written for result in await backend.compare_and_set(KIND, writes))
        found = await backend.read_many(KIND, [write.key for write in writes])
        assert {record.value for record in found.values()} == {value}
        assert len(found) == 50

    @pytest.mark.parametrize(
        "large",
        [
            Write("a", b"x" * MOST_BYTES, None),
            Write("a", b"", None, label="l" * MOST_BYTES),
            Write("a", b"x" * (MOST_BYTES - 200), None, label="ü" * 100, open=True),
            Write("k" * (LONGEST_KEY + 1), b"", None),
            Write("ü" * (LONGEST_KEY // 2 + 1), b"", None),
        ],
    )
    async def test_nothing_of_the_call_is_written(self, backend, client, table, large):
        """A record that DynamoDB cannot hold is refused by name, and its call writes nothing."""
        with pytest.raises(RecordTooLargeError, match="bytes") as raised:
            await backend.compare_and_set(KIND, [Write("b", b"", None), large])
        assert (raised.value.kind, raised.value.key) == (KIND, large.key)
        assert raw(client, table) == []

    async def test_a_kind_too_long(self, backend):
        """A kind that is longer than a partition key is refused."""
        with pytest.raises(RecordTooLargeError, match="kind"):
            await backend.compare_and_set("k" * (LONGEST_KIND + 1), [Write("a", b"", None)])

    async def test_the_longest_key(self, backend):
        """The longest key is written, listed as due and open, and removed."""
        key = "ü" * (LONGEST_KEY // 2)
        stamp = await put(backend, key, due_at=NOW, open=True)
        assert [due.key for due in await backend.list_due(KIND, NOW, 5)] == [key]
        assert [found.key for found in await backend.list_open(KIND)] == [key]
        assert (await backend.compare_and_set(KIND, [Write(key, None, stamp)]))[0].written

    async def test_a_key_too_long_is_absent(self, backend):
        """Reading or removing under a name that no record can have finds none."""
        key = "k" * 3000
        await put(backend, "a")
        assert set(await backend.read_many(KIND, [key, "", "a"])) == {"a"}
        assert (await backend.compare_and_set(KIND, [Write(key, None, Stamp(1, "x"))]))[0].written


class TestDamaged:
    @pytest.mark.parametrize(
        ("attribute", "value"),
        [
            ("value", None),
            ("value", {"S": "text"}),
            ("version", None),
            ("version", {"N": "1.5"}),
            ("write_id", {"N": "1"}),
            ("label", None),
            ("format", None),
            ("due", {"S": "soon"}),
        ],
    )
    async def test_an_item_that_is_not_ours(self, backend, client, table, attribute, value):
        """A missing or mistyped attribute is an error that names store, kind and record, alone and in a listing."""
        await put(backend, "a", due_at=NOW, label="l")
        damage(client, table, attribute, value)
        for reading in (backend.read(KIND, "a"), listed(backend)):
            with pytest.raises(BackendCorruptError, match="thing 'a'") as raised:
                await reading
            assert backend.uri in str(raised.value)

    @pytest.mark.parametrize("value", [None, {"N": "1"}])
    async def test_a_label_that_cannot_be_read(self, backend, client, table, value):
        """Where only labels are read, an item without one is an error too, not a record less."""
        await put(backend, "a", label="l", open=True)
        damage(client, table, "label", value)
        for reading in (
            backend.count_labels(KIND),
            backend.list_keys(KIND, ["other"]),
            backend.list_open(KIND),
            listed(backend, ["other"]),
        ):
            with pytest.raises(BackendCorruptError, match="thing 'a'"):
                await reading

    async def test_a_due_time_that_is_none(self, backend, client, table):
        """An index entry that begins with no time is an error that names the record."""
        await put(backend, "a", due_at=NOW)
        damage(client, table, "due", {"S": "1999 or so"})
        with pytest.raises(BackendCorruptError, match="thing 'a'"):
            await backend.list_due(KIND, NOW, 5)

    async def test_a_later_format_is_not_touched(self, backend, client, table):
        """An item of a later program is an error that says to upgrade, by every way of reading."""
        await put(backend, "a", label="l", open=True)
        damage(client, table, "format", {"N": "2"})
        before = raw(client, table)
        for reading in (
            backend.read(KIND, "a"),
            listed(backend),
            backend.count_labels(KIND),
            backend.list_keys(KIND, ["other"]),
            backend.list_open(KIND),
            backend.compare_and_set(KIND, [Write("a", b"", None)]),
        ):
            with pytest.raises(BackendCorruptError, match=r"thing 'a'.*Upgrade"):
                await reading
        assert raw(client, table) == before
