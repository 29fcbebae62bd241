"""What every record backend keeps: subclass `RecordBackendContract`, give it a backend, and the rules are checked."""

import asyncio
import threading
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from resources.records.backend import PAGE, BackendUnavailableError, RecordBackend
from resources.records.record import DueKey, OpenKey, Record, Stamp, Write

KIND = "thing"
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOSTILE_KEYS = ("a b", "a/b", "'; DROP TABLE records; --", "ü", "日本語", "🙈", "\u202e", "\uffff", "A", "a", "%", "_")


async def put(backend: RecordBackend, key: str, value: bytes = b"v", expected: Stamp | None = None, **hints) -> Stamp:
    """Write a record that nothing stands in the way of; its stamp."""
    [result] = await backend.compare_and_set(KIND, [Write(key, value, expected, **hints)])
    assert result.written
    assert result.stamp is not None
    return result.stamp


async def listed(backend: RecordBackend, labels=None) -> list[Record]:
    """All records of the kind, or those that carry one of the labels."""
    return [record async for record in backend.list_records(KIND, labels=labels)]


async def increment(backend: RecordBackend, key: str, times: int) -> None:
    """Add to a number in a record, each time reading it and trying until nobody was faster."""
    for _ in range(times):
        while True:
            found = await backend.read(KIND, key)
            number = int(found.value) if found else 0
            write = Write(key, str(number + 1).encode(), found.stamp if found else None)
            if (await backend.compare_and_set(KIND, [write]))[0].written:
                break


class RecordBackendContract(ABC):
    INCREMENTS = 250  # of each of eight threads; fewer where a server is slow

    @pytest.fixture
    @abstractmethod
    def backend(self, tmp_path) -> RecordBackend:
        """A backend in which nothing was written yet."""

    @abstractmethod
    def losing_replies(self, backend: RecordBackend, *, raises: bool) -> RecordBackend:
        """The same records through a backend that commits each write and then says that none was written, or raises."""

    def overtaken(self, backend: RecordBackend) -> RecordBackend:
        """The same records through a backend whose replies are lost, and others change each record before it looks."""
        losing = self.losing_replies(backend, raises=False)
        write = losing._write

        async def write_then_be_overtaken(kind, writes):
            done = await write(kind, writes)
            for change, _ in writes:
                for number in (1, 2):
                    found = await backend.read(kind, change.key)
                    await put(backend, change.key, f"theirs {number}".encode(), found.stamp)
            return done

        losing._write = write_then_be_overtaken
        return losing

    async def test_nothing_written_reads_as_empty(self, backend):
        """An empty backend finds nothing and fails nowhere."""
        assert await backend.read(KIND, "a") is None
        assert await backend.read_many(KIND, []) == {}
        assert await listed(backend) == []
        assert await backend.list_keys(KIND, ["x"]) == []
        assert await backend.list_due(KIND, NOW, 10) == []
        assert await backend.list_open(KIND) == []
        assert await backend.count_labels(KIND) == {}
        assert await backend.compare_and_set(KIND, []) == []

    async def test_every_field_comes_back(self, backend):
        """A record is read as it was written: key, value, stamp, due time and label."""
        stamp = await put(backend, "a", b"\x00\xffvalue", due_at=NOW, label="red")
        assert await backend.read(KIND, "a") == Record("a", b"\x00\xffvalue", stamp, NOW, "red")
        assert stamp.version == 1
        assert stamp.write_id

    async def test_hints_may_be_absent(self, backend):
        """A record without due time and label is read without them."""
        stamp = await put(backend, "a", b"")
        assert await backend.read(KIND, "a") == Record("a", b"", stamp, None, "")

    async def test_a_change_replaces_every_field(self, backend):
        """After a change nothing of the former record is left, its hints included."""
        first = await put(backend, "a", b"1", due_at=NOW, label="red")
        second = await put(backend, "a", b"2", first)
        assert await backend.read(KIND, "a") == Record("a", b"2", second, None, "")
        assert second.version == 2
        assert await backend.list_due(KIND, NOW, 10) == []
        assert await backend.count_labels(KIND) == {"": 1}

    async def test_create_only_if_absent(self, backend):
        """A record that exists is not created again, and the refusal tells its stamp."""
        stamp = await put(backend, "a", b"first")
        [result] = await backend.compare_and_set(KIND, [Write("a", b"second", None)])
        assert (result.written, result.stamp) == (False, stamp)
        assert (await backend.read(KIND, "a")).value == b"first"

    async def test_absent_record_is_not_updated(self, backend):
        """An update of what is not there is refused and writes nothing."""
        [result] = await backend.compare_and_set(KIND, [Write("a", b"1", Stamp(1, "x"))])
        assert (result.written, result.stamp) == (False, None)
        assert await backend.read(KIND, "a") is None

    async def test_lost_update_is_refused(self, backend):
        """Of two changes made from the same reading the second is refused."""
        read = await put(backend, "a", b"0")
        winner = await put(backend, "a", b"mine", read)
        [result] = await backend.compare_and_set(KIND, [Write("a", b"theirs", read)])
        assert (result.written, result.stamp) == (False, winner)
        assert (await backend.read(KIND, "a")).value == b"mine"

    async def test_value_that_came_back_is_not_the_same_state(self, backend):
        """A-B-A is seen: removed and made again with equal value and version, the old stamp is refused."""
        before = await put(backend, "a", b"same")
        await backend.compare_and_set(KIND, [Write("a", None, before)])
        after = await put(backend, "a", b"same")
        assert after.version == before.version
        assert after.write_id != before.write_id
        [result] = await backend.compare_and_set(KIND, [Write("a", b"late", before)])
        assert (result.written, result.stamp) == (False, after)
        assert not (await backend.compare_and_set(KIND, [Write("a", None, before)]))[0].written

    async def test_version_alone_is_no_stamp(self, backend):
        """A stamp whose version fits and whose write id does not is refused, and the other way round."""
        stamp = await put(backend, "a")
        for wrong in (Stamp(stamp.version, "other"), Stamp(stamp.version + 1, stamp.write_id)):
            assert not (await backend.compare_and_set(KIND, [Write("a", b"x", wrong)]))[0].written

    async def test_removal_needs_the_stamp(self, backend):
        """Only who has seen the record as it is may remove it."""
        old = await put(backend, "a", b"1")
        new = await put(backend, "a", b"2", old)
        [refused] = await backend.compare_and_set(KIND, [Write("a", None, old)])
        assert (refused.written, refused.stamp) == (False, new)
        [removed] = await backend.compare_and_set(KIND, [Write("a", None, new)])
        assert (removed.written, removed.stamp) == (True, None)
        assert await backend.read(KIND, "a") is None

    async def test_removing_what_is_gone_is_done(self, backend):
        """A removal whose record is absent has what it wants."""
        stamp = await put(backend, "a")
        for _ in range(2):
            assert (await backend.compare_and_set(KIND, [Write("a", None, stamp)]))[0].written
        assert (await backend.compare_and_set(KIND, [Write("a", None, None)]))[0].written

    async def test_bulk_has_a_result_each_in_order(self, backend):
        """Each write of a call succeeds or fails on its own, and results stand in the order of the writes."""
        a, b = await put(backend, "a"), await put(backend, "b")
        results = await backend.compare_and_set(
            KIND,
            [
                Write("d", b"new", None),
                Write("a", b"changed", a),
                Write("b", b"refused", Stamp(9, "x")),
                Write("c", b"refused", Stamp(1, "x")),
            ],
        )
        assert [(result.key, result.written) for result in results] == [
            ("d", True),
            ("a", True),
            ("b", False),
            ("c", False),
        ]
        assert results[2].stamp == b
        assert {record.key: record.value for record in await listed(backend)} == {
            "a": b"changed",
            "b": b"v",
            "d": b"new",
        }

    async def test_many_creations_have_a_result_each(self, backend):
        """Of hundreds of new records in one call just those are refused whose key is taken, wherever they stand."""
        taken = {f"k{i:03d}": await put(backend, f"k{i:03d}") for i in (0, 7, 120, 249)}
        writes = [Write(f"k{i:03d}", f"{i}".encode(), None, label=f"l{i % 3}") for i in range(250)]
        results = await backend.compare_and_set(KIND, writes)
        assert {result.key: result.stamp for result in results if not result.written} == taken
        values = {record.key: record.value for record in await listed(backend)}
        assert values == {write.key: b"v" if write.key in taken else write.value for write in writes}

    async def test_a_thousand_writes_in_one_call(self, backend):
        """A call may be large, and read_many finds all of it."""
        keys = [f"k{i:05d}" for i in range(PAGE + 500)]
        results = await backend.compare_and_set(KIND, [Write(key, key.encode(), None) for key in keys])
        assert all(result.written for result in results)
        found = await backend.read_many(KIND, keys)
        assert {key: record.value for key, record in found.items()} == {key: key.encode() for key in keys}
        assert {key: record.stamp for key, record in found.items()} == {result.key: result.stamp for result in results}

    async def test_a_key_twice_in_one_call_is_an_error(self, backend):
        """Two writes of one key in a call are refused as a whole."""
        with pytest.raises(ValueError, match="once"):
            await backend.compare_and_set(KIND, [Write("a", b"1", None), Write("a", b"2", None)])
        assert await backend.read(KIND, "a") is None

    async def test_kinds_are_apart(self, backend):
        """The same key of another kind is another record."""
        await put(backend, "a", label="x", due_at=NOW)
        assert await backend.read("other", "a") is None
        assert (await backend.compare_and_set("other", [Write("a", b"o", None)]))[0].written
        assert (await backend.read(KIND, "a")).value == b"v"
        assert await backend.count_labels("other") == {"": 1}
        assert await backend.list_due("other", NOW, 5) == []

    async def test_kinds_are_listed(self, backend):
        """Each kind that has a record is listed once; one whose last record went is not."""
        assert await backend.list_kinds() == []
        for kind in ("b", "a", "job_result/x", "job_result/é"):
            await backend.compare_and_set(kind, [Write("1", b"", None), Write("2", b"", None)])
        [gone] = await backend.compare_and_set("gone", [Write("1", b"", None)])
        await backend.compare_and_set("gone", [Write("1", None, gone.stamp)])
        assert await backend.list_kinds() == ["a", "b", "job_result/x", "job_result/é"]

    async def test_any_text_is_a_key_a_label_and_a_value(self, backend):
        """Keys, labels and values of any script survive; keys that differ in case or script are different."""
        for key in HOSTILE_KEYS:
            await put(backend, key, key.encode(), label=key, due_at=NOW)
        assert [record.key for record in await listed(backend)] == sorted(HOSTILE_KEYS)
        assert {key: r.value for key, r in (await backend.read_many(KIND, HOSTILE_KEYS)).items()} == {
            key: key.encode() for key in HOSTILE_KEYS
        }
        assert await backend.count_labels(KIND) == dict.fromkeys(HOSTILE_KEYS, 1)
        assert [due.key for due in await backend.list_due(KIND, NOW, 100)] == sorted(HOSTILE_KEYS)
        for key in HOSTILE_KEYS:
            assert await backend.list_keys(KIND, [key]) == [key]

    async def test_listing_is_ascending_and_whole(self, backend):
        """A listing longer than a page gives each record once, by ascending key; also one that begins behind a key."""
        keys = [f"k{i:05d}" for i in range(2 * PAGE + 7)]
        await backend.compare_and_set(KIND, [Write(key, b"", None) for key in reversed(keys)])
        assert [record.key for record in await listed(backend)] == keys
        behind = [record.key async for record in backend.list_records(KIND, after=keys[PAGE])]
        assert behind == keys[PAGE + 1 :]

    async def test_listing_misses_nothing_while_others_write(self, backend):
        """What exists during the whole listing appears exactly once, whatever is added, changed and removed."""
        stays = [f"k{i:05d}" for i in range(0, 4 * PAGE, 2)]
        await backend.compare_and_set(KIND, [Write(key, b"", None) for key in stays])
        seen: list[str] = []
        async for record in backend.list_records(KIND):
            seen.append(record.key)
            if len(seen) % 100 == 0:
                i = len(seen)
                await put(backend, f"k{(i * 7919) % (4 * PAGE) | 1:05d}-{i}")
                found = await backend.read(KIND, stays[i % len(stays)])
                await put(backend, found.key, b"changed", found.stamp, label=str(i))
                await backend.compare_and_set(KIND, [Write(key := f"gone{i}", b"", None)])
                await backend.compare_and_set(KIND, [Write(key, None, (await backend.read(KIND, key)).stamp)])
        assert len(seen) == len(set(seen))
        assert set(stays) <= set(seen)

    async def test_labels_are_counted(self, backend):
        """Each label counts the records that carry it now."""
        red = await put(backend, "a", label="red")
        blue = await put(backend, "b", label="blue")
        await put(backend, "c", label="blue")
        assert await backend.count_labels(KIND) == {"red": 1, "blue": 2}
        await put(backend, "a", b"", red, label="blue")
        await backend.compare_and_set(KIND, [Write("b", None, blue)])
        assert await backend.count_labels(KIND) == {"blue": 2}

    async def test_labels_select(self, backend):
        """Keys and records are had by label, ascending, each once."""
        for i in range(30):
            await put(backend, f"{29 - i:02d}", label=("red", "green", "blue")[i % 3])
        expected = sorted(f"{29 - i:02d}" for i in range(30) if i % 3 != 1)
        assert await backend.list_keys(KIND, {"red", "blue"}) == expected
        assert [record.key for record in await listed(backend, {"red", "blue"})] == expected
        assert await listed(backend, {"none"}) == []
        assert await backend.list_keys(KIND, []) == []

    async def test_listing_by_label_has_pages(self, backend):
        """More records of a label than a page holds are all listed."""
        writes = [Write(f"k{i:05d}", b"", None, label="even" if i % 2 == 0 else "odd") for i in range(2 * PAGE + 50)]
        await backend.compare_and_set(KIND, writes)
        assert [record.key for record in await listed(backend, ["odd"])] == [w.key for w in writes if w.label == "odd"]

    async def test_due_are_the_longest_due_first(self, backend):
        """What is due comes by time, then key; what is due later or never does not come."""
        for key, due in (("c", NOW), ("a", NOW), ("b", NOW - MICROSECOND), ("later", NOW + MICROSECOND)):
            await put(backend, key, due_at=due)
        await put(backend, "never")
        assert await backend.list_due(KIND, NOW, 10) == [
            DueKey(NOW - MICROSECOND, "b"),
            DueKey(NOW, "a"),
            DueKey(NOW, "c"),
        ]
        assert [due.key for due in await backend.list_due(KIND, NOW, 2)] == ["b", "a"]
        assert [due.key for due in await backend.list_due(KIND, NOW, None)] == ["b", "a", "c"]

    async def test_due_listing_goes_on_over_equal_times(self, backend):
        """The cursor loses and doubles nothing where many records are due at the same moment."""
        for i in range(10):
            await put(backend, f"k{i}", due_at=NOW if i >= 3 else NOW + MICROSECOND)
        seen: list[str] = []
        after = None
        while page := await backend.list_due(KIND, NOW + MICROSECOND, 3, after):
            seen += [due.key for due in page]
            after = page[-1]
        assert seen == [f"k{i}" for i in (3, 4, 5, 6, 7, 8, 9, 0, 1, 2)]
        behind = await backend.list_due(KIND, NOW + MICROSECOND, None, DueKey(NOW, "k8"))
        assert [due.key for due in behind] == ["k9", "k0", "k1", "k2"]

    async def test_due_long_ago_is_due(self, backend):
        """A time before 1970 is a time like any other."""
        long_ago = datetime(1950, 1, 1, tzinfo=UTC)
        await put(backend, "a", due_at=long_ago)
        assert await backend.list_due(KIND, NOW, 5) == [DueKey(long_ago, "a")]

    @pytest.mark.parametrize(
        "moment",
        [
            NOW,
            NOW.replace(microsecond=1),
            NOW.replace(microsecond=999_999),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            NOW.astimezone(timezone(timedelta(hours=5, minutes=45))),
        ],
    )
    async def test_times_are_exact(self, backend, moment):
        """A due time comes back aware and equal to the microsecond, whatever its zone."""
        await put(backend, "a", due_at=moment)
        found = (await backend.read(KIND, "a")).due_at
        assert found == moment
        assert found.tzinfo is not None
        assert await backend.list_due(KIND, moment, 5) == [DueKey(moment, "a")]
        assert await backend.list_due(KIND, moment - MICROSECOND, 5) == []

    async def test_due_without_zone_is_an_error(self, backend):
        """A time that does not say its zone is refused before anything is written."""
        with pytest.raises(ValueError, match="zone"):
            await backend.compare_and_set(
                KIND, [Write("b", b"", None), Write("a", b"", None, NOW.replace(tzinfo=None))]
            )
        assert await listed(backend) == []

    async def test_empty_key_is_an_error(self, backend):
        """A record has a name."""
        with pytest.raises(ValueError, match="empty"):
            await backend.compare_and_set(KIND, [Write("", b"", None)])

    async def test_open_records_are_listed(self, backend):
        """Open records come with their labels, by ascending key; closing or removing one takes it out."""
        stamps = {key: await put(backend, key, label=f"l{key}", open=key != "b") for key in ("c", "b", "a", "d")}
        assert await backend.list_open(KIND) == [OpenKey("a", "la"), OpenKey("c", "lc"), OpenKey("d", "ld")]
        await put(backend, "a", b"", stamps["a"], label="closed")
        await put(backend, "b", b"", stamps["b"], label="opened", open=True)
        await backend.compare_and_set(KIND, [Write("d", None, stamps["d"])])
        assert await backend.list_open(KIND) == [OpenKey("b", "opened"), OpenKey("c", "lc")]
        assert await backend.list_open("other") == []

    async def test_open_survives_reading(self, backend):
        """Whether a record is open is read with it."""
        await put(backend, "a", open=True)
        await put(backend, "b")
        assert [record.open for record in await listed(backend)] == [True, False]

    async def test_all_open_records_are_listed(self, backend):
        """More open records than a page holds are all listed, those of any name included."""
        writes = [Write(f"k{i:05d}", b"", None, label="x", open=i % 2 == 0) for i in range(2 * PAGE + 50)]
        await backend.compare_and_set(KIND, writes)
        hostile = [Write(key, b"", None, label=key, open=True) for key in HOSTILE_KEYS]
        await backend.compare_and_set(KIND, hostile)
        expected = [OpenKey(write.key, write.label) for write in writes + hostile if write.open]
        assert await backend.list_open(KIND) == sorted(expected)

    async def test_due_together_are_due(self, backend):
        """What one asker is given is due, distinct and within the limit; asking on after writing finds all."""
        keys = {f"k{i:04d}" for i in range(200)}
        await backend.compare_and_set(KIND, [Write(key, b"", None, NOW) for key in keys])
        await put(backend, "later", due_at=NOW + MICROSECOND)
        seen: set[str] = set()
        while found := await backend.list_due_together(KIND, NOW, 60, "me"):
            assert len(found) == len(set(found)) <= 60
            assert not seen & set(found)
            seen |= set(found)
            records = (await backend.read_many(KIND, found)).values()
            await backend.compare_and_set(KIND, [Write(record.key, b"", record.stamp) for record in records])
        assert seen == keys

    def test_in_parts_loses_nothing(self, backend):
        """Ordering keys by where they lie keeps each once."""
        keys = [f"k{i}" for i in range(100)]
        assert sorted(backend.in_parts(KIND, keys)) == sorted(keys)

    async def test_own_write_is_recognised_below_others(self, backend):
        """A write whose reply was lost is ours although others have changed the record since."""
        overtaken = self.overtaken(backend)
        [created] = await overtaken.compare_and_set(KIND, [Write("a", b"ours", None)])
        assert created.written
        current = await backend.read(KIND, "a")
        assert (current.value, current.stamp.version) == (b"theirs 2", 3)
        assert created.stamp.version == 1
        [late] = await backend.compare_and_set(KIND, [Write("a", b"late", created.stamp)])
        assert (late.written, late.stamp) == (False, current.stamp)

    async def test_lost_reply_counts_as_written(self, backend):
        """A write that was committed and reported as refused is recognised by its write id."""
        losing = self.losing_replies(backend, raises=False)
        [created] = await losing.compare_and_set(KIND, [Write("a", b"1", None)])
        assert created.written
        assert (await backend.read(KIND, "a")).stamp == created.stamp
        [changed] = await losing.compare_and_set(KIND, [Write("a", b"2", created.stamp)])
        assert changed.written
        assert (await backend.read(KIND, "a")) == Record("a", b"2", changed.stamp)
        [removed] = await losing.compare_and_set(KIND, [Write("a", None, changed.stamp)])
        assert removed.written
        assert await backend.read(KIND, "a") is None

    async def test_lost_reply_of_a_refused_write_is_a_refusal(self, backend):
        """Looking again never takes another's write for ours."""
        theirs = await put(backend, "a", b"theirs")
        losing = self.losing_replies(backend, raises=False)
        results = await losing.compare_and_set(KIND, [Write("a", b"ours", None), Write("b", b"ours", None)])
        assert [result.written for result in results] == [False, True]
        assert results[0].stamp == theirs

    async def test_error_after_the_commit_leaves_the_truth_readable(self, backend):
        """If the backend fails after it committed, the caller is told that nothing is known, and reading tells."""
        losing = self.losing_replies(backend, raises=True)
        with pytest.raises(BackendUnavailableError):
            await losing.compare_and_set(KIND, [Write("a", b"1", None)])
        assert (await backend.read(KIND, "a")).value == b"1"

    async def test_many_threads_lose_no_change(self, backend):
        """Eight threads that add to one number lose none of their additions."""
        threads = [
            threading.Thread(target=lambda: asyncio.run(increment(backend, "n", self.INCREMENTS)), daemon=True)
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert await backend.read(KIND, "n") == msgspec.structs.replace(
            await backend.read(KIND, "n"), key="n", value=str(8 * self.INCREMENTS).encode()
        )
        assert (await backend.read(KIND, "n")).stamp.version == 8 * self.INCREMENTS
