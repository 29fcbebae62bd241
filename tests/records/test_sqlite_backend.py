"""The SQLite backend: the contract, and what is its own: its file, its processes, its crashes."""

import os
import sqlite3
import stat
import time
from collections import Counter

import pytest

from resources.records.backend import BackendCorruptError, BackendError, BackendUnavailableError, RecordBackend
from resources.records.record import OpenKey, Stamp, Write
from resources.records.sqlite_backend import SqliteBackend
from resources.records.sqlite_queries import MIGRATIONS
from tests.records.contract import KIND, MICROSECOND, NOW, RecordBackendContract, listed, put
from tests.records.increment_process import write_for_ever
from tests.records.processes_contract import SPAWN, ManyProcessesContract


class LosingSqlite(SqliteBackend):
    """Commits, then loses the reply."""

    raises = False

    async def _write(self, kind, writes):
        done = await super()._write(kind, writes)
        if self.raises:
            raise BackendUnavailableError(self.uri, "the line broke")
        return [False for _ in done]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "state.db"


@pytest.fixture
async def backend(path):
    opened = SqliteBackend(path)
    yield opened
    await opened.close()


def raw(path, query):
    """Read around the backend, so that it is not checked by itself."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


class TestSqliteBackend(RecordBackendContract):
    @pytest.fixture
    async def backend(self, path) -> RecordBackend:
        """A backend on a new file."""
        opened = SqliteBackend(path)
        yield opened
        await opened.close()

    def losing_replies(self, backend, *, raises) -> RecordBackend:
        """See RecordBackendContract."""
        losing = LosingSqlite(backend.path)
        losing.raises = raises
        return losing


class TestFile:
    async def test_rows_are_what_was_written(self, backend, path):
        """The table holds key, value, stamp, microseconds and label, by SQLite's own account."""
        stamp = await put(backend, "ä", b"\x00v", due_at=NOW, label="red")
        micros = int(NOW.timestamp()) * 1_000_000 + NOW.microsecond
        assert raw(path, "SELECT * FROM records") == [(KIND, "ä", b"\x00v", 1, stamp.write_id, micros, 1, 0)]
        assert raw(path, "SELECT * FROM labels") == [(1, "red")]

    async def test_another_program_may_write(self, backend, path):
        """A record that another connection put into the file is read like ours."""
        await put(backend, "a")
        connection = sqlite3.connect(path)
        connection.execute("INSERT INTO labels VALUES (77, 'l')")
        connection.execute("INSERT INTO records VALUES (?, 'b', x'00ff', 7, 'w', 1, 77, 0)", (KIND,))
        connection.commit()
        connection.close()
        found = await backend.read(KIND, "b")
        assert (found.value, found.stamp.version, found.label) == (b"\x00\xff", 7, "l")
        assert found.due_at == found.due_at.replace(year=1970, month=1, day=1, hour=0, microsecond=1)

    async def test_survives_closing(self, backend, path):
        """What was written is there for who opens the file next."""
        stamp = await put(backend, "a", b"1")
        await backend.close()
        again = SqliteBackend(path)
        assert (await again.read(KIND, "a")).stamp == stamp
        await again.close()

    async def test_closed_backend_opens_anew(self, backend):
        """Closing gives the connections back, and a later use makes a new one that sees everything."""
        await put(backend, "a")
        await backend.close()
        assert [record.key for record in await listed(backend)] == ["a"]

    async def test_file_put_in_its_place_is_the_one_used(self, backend, path, tmp_path):
        """A backup that was put back is read and written from then on, and the file that stood there no more."""
        await put(backend, "old")
        backup = SqliteBackend(tmp_path / "backup.db")
        await put(backup, "restored")
        await backup.close()
        backup.path.rename(path)
        for left in path.parent.glob("*-*"):
            left.unlink()
        assert [record.key for record in await listed(backend)] == ["restored"]
        await put(backend, "new")
        assert raw(path, "SELECT key FROM records ORDER BY key") == [("new",), ("restored",)]

    async def test_leaving_an_old_file_spares_the_new_one(self, backend, path):
        """What others have written into the new file, and SQLite has not moved out of its log yet, is not lost."""
        await put(backend, "old")
        for file in path.parent.iterdir():
            file.unlink()
        other = SqliteBackend(path)
        await put(other, "new")
        assert [record.key for record in await listed(backend)] == ["new"]
        await backend.close()
        assert raw(path, "SELECT key FROM records") == [("new",)]
        await other.close()

    async def test_only_its_owner_may_read(self, backend, path):
        """Folder and file belong to the user alone, SQLite's own files beside it included."""
        await put(backend, "a")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}

    async def test_each_commit_is_synced(self, backend):
        """What was written outlives a power cut: the ledger of what was spent lies here."""
        await backend.create()
        assert backend._file.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL

    async def test_due_listing_uses_its_index(self, backend, path):
        """Listing what is due never scans all records."""
        await put(backend, "a", due_at=NOW + MICROSECOND)
        from resources.records import sqlite_queries as sql

        plan = sqlite3.connect(path).execute("EXPLAIN QUERY PLAN " + sql.LIST_DUE, (KIND, 1, -1, "", 10)).fetchall()
        assert "records_due" in plan[0][3]
        assert not any("SCAN" in row[3] or "TEMP B-TREE" in row[3] for row in plan)


class TestErrors:
    @pytest.mark.parametrize("content", [b"not a database", b"x" * 10_000])
    async def test_file_that_is_no_database(self, backend, path, content):
        """Another file in the place of ours is an error that names it, and it keeps its bytes."""
        path.parent.mkdir()
        path.write_bytes(content)
        for call in (backend.read(KIND, "a"), backend.compare_and_set(KIND, [Write("a", b"", None)])):
            with pytest.raises(BackendCorruptError, match=str(path)) as raised:
                await call
            assert raised.value.uri == backend.uri
        assert path.read_bytes() == content

    async def test_damaged_file(self, backend, path):
        """A file whose pages were overwritten is corrupt, not empty."""
        for i in range(2000):
            await put(backend, f"k{i}", b"v" * 100)
        await backend.close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (path.stat().st_size - 4096))
        with pytest.raises(BackendCorruptError):
            await listed(backend)

    async def test_newer_format_is_refused(self, backend, path):
        """A file of a later version is not touched, and the message says to upgrade."""
        await put(backend, "a")
        await backend.close()
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
        connection.close()
        with pytest.raises(BackendCorruptError, match="Upgrade"):
            await backend.read(KIND, "a")

    async def test_older_format_is_brought_up(self, backend, path):
        """A file of the first format keeps its records; what it did not know counts as open until it is written."""
        path.parent.mkdir()
        connection = sqlite3.connect(path)
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute("INSERT INTO records VALUES (?, 'a', x'00', 3, 'w', NULL, 'l')", (KIND,))
        connection.execute("INSERT INTO records VALUES (?, 'b', x'01', 4, 'x', 5, 'm')", (KIND,))
        connection.execute("PRAGMA user_version=1")
        connection.commit()
        connection.close()
        found = await backend.read(KIND, "a")
        assert (found.stamp, found.label, found.open) == (Stamp(3, "w"), "l", True)
        await put(backend, "a", b"", found.stamp)
        assert await backend.list_open(KIND) == [OpenKey("b", "m")]
        assert await backend.count_labels(KIND) == {"": 1, "m": 1}
        assert [due.key for due in await backend.list_due(KIND, NOW, 9)] == ["b"]
        assert raw(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]

    async def test_removed_file_is_unavailable(self, backend, path):
        """No empty file takes its place, for whoever puts a backup back to find; what is put there then is used."""
        await put(backend, "a")
        aside = path.rename(path.with_name("aside.db"))
        for call in (backend.read(KIND, "a"), backend.compare_and_set(KIND, [Write("b", b"", None)])):
            with pytest.raises(BackendUnavailableError, match="removed while it was in use"):
                await call
        assert not path.exists()
        aside.rename(path)
        assert [record.key for record in await listed(backend)] == ["a"]

    async def test_locked_file_is_unavailable(self, backend, path):
        """A lock that outlasts our patience is an outage; afterwards the same backend works."""
        await put(backend, "a", b"1")
        backend._file.connection.execute("PRAGMA busy_timeout=50")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailableError, match=r"locked\. Another process"):
            await backend.compare_and_set(KIND, [Write("b", b"", None)])
        assert (await backend.read(KIND, "a")).value == b"1"
        other.execute("ROLLBACK")
        await put(backend, "b")
        other.close()

    async def test_full_disk_writes_nothing_and_passes(self, backend, path):
        """A write that finds no room changes nothing and says so; once there is room the same backend works."""
        await put(backend, "a")
        [(pages,)] = backend._file.connection.execute("PRAGMA page_count").fetchall()
        backend._file.connection.execute(f"PRAGMA max_page_count={pages + 3}")
        with pytest.raises(BackendUnavailableError, match=r"full\. Make room"):
            await backend.compare_and_set(KIND, [Write(f"k{i}", b"x" * 50_000, None) for i in range(10)])
        backend._file.connection.execute("PRAGMA max_page_count=1000000")
        assert [record.key for record in await listed(backend)] == ["a"]
        await put(backend, "b")
        assert raw(path, "SELECT count(*) FROM records") == [(2,)]

    async def test_place_that_cannot_be(self, tmp_path):
        """A path below a file is an error of ours that names the store."""
        (tmp_path / "file").write_text("")
        with pytest.raises(BackendError, match=r"file/state\.db"):
            await SqliteBackend(tmp_path / "file" / "state.db").read(KIND, "a")


class TestManyProcesses(ManyProcessesContract):
    @pytest.fixture
    def uri(self, path) -> str:
        """A new file."""
        return f"sqlite:///{path}"


class TestProcesses:
    def test_killed_writer_leaves_whole_calls(self, path):
        """Kill a writer wherever it is: each of its calls is there whole or not at all."""
        for _ in range(3):
            started = SPAWN.Event()
            process = SPAWN.Process(target=write_for_ever, args=(path, started))
            process.start()
            assert started.wait(30)
            time.sleep(int.from_bytes(os.urandom(1)) / 2000)
            process.kill()
            process.join()
            counts = Counter(label for (label,) in raw(path, "SELECT label FROM records"))
            assert set(counts.values()) == {10}
            assert raw(path, "PRAGMA integrity_check") == [("ok",)]
            path.unlink()
            for beside in path.parent.glob("state.db-*"):
                beside.unlink()
