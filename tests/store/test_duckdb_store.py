"""The DuckDB store: the contract, and what is its own: its file, its lock, its crashes."""

import contextlib
import multiprocessing
import random
import resource
import stat
import time

import duckdb
import msgspec
import numpy as np
import pytest

from resources.embedder.hash_embedder import HashEmbedder
from resources.file_lock import exclusive_lock, shared_lock
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import (
    Removal,
    Store,
    StoreCorruptError,
    StoreError,
    StoreTooNewError,
    StoreUnavailableError,
)
from tests.store.contract import StoreContract, build, search, texts_of
from tests.store.raw_rows import DuckDBRows, RawRows
from tests.store.writer_process import N_DOCUMENTS, texts_at, write_for_ever, write_versions

STAMP = HashEmbedder.stamp()
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stores" / "test.duckdb"


@pytest.fixture
def store(path):
    return DuckDBStore("test", path, STAMP, lock_timeout=5)


def raw(path, query):
    """Read around the store, so that it is not checked by itself."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


class TestDuckDBStore(StoreContract):
    @pytest.fixture
    def store(self, path) -> Store:
        """See `StoreContract.store`."""
        return DuckDBStore("test", path, STAMP)

    def rows(self, store) -> RawRows:
        """See `StoreContract.rows`."""
        return DuckDBRows(store._file.path)

    def reopened(self, store, stamp) -> Store:
        """See `StoreContract.reopened`."""
        return DuckDBStore(store.slug, store._file.path, stamp)


class TestFile:
    def test_rows_are_what_was_given(self, store, path):
        """The tables hold what was written, by DuckDB's own account."""
        given = build("a", ["one", "two"], headings=("H",), token=3)
        store.write([given])
        rows = raw(path, "SELECT chunk_id, ordinal, text, headings, fencing_token, vector FROM chunks ORDER BY ordinal")
        assert [row[:5] for row in rows] == [
            (chunk.chunk_id, i, chunk.text, ["H"], 3) for i, chunk in enumerate(given.chunks)
        ]
        for row, chunk in zip(rows, given.chunks, strict=True):
            assert np.array(row[5], np.float32).tobytes() == given.vectors[chunk.chunk_id].tobytes()
        assert raw(path, "SELECT document_id, n_chunks, n_entries, fencing_token FROM documents") == [("a", 2, 2, 3)]
        assert raw(path, "SELECT count(*) FROM entries") == [(2,)]
        assert raw(path, "FROM store_meta") == [(2, "hash", "1", 64)]

    def test_kept_rows_keep_vector_and_token(self, store, path):
        """A kept chunk's vector is the very one written first, even when its place changed."""
        first = build("a", ["one", "two"], token=1)
        store.write([first])
        before = dict(raw(path, "SELECT chunk_id, vector FROM chunks"))
        second = build("a", ["zero", "one", "two"], token=2)
        wrong = dict.fromkeys(second.vectors, np.ones(64, np.float32))
        store.write([msgspec.structs.replace(second, vectors=wrong)])
        rows = raw(path, "SELECT chunk_id, vector, fencing_token FROM chunks")
        after = {chunk_id: (vector, token) for chunk_id, vector, token in rows}
        assert {key: after[key] for key in before} == {key: (vector, 1) for key, vector in before.items()}
        assert after[second.chunks[0].chunk_id][1] == 2

    def test_unchanged_write_leaves_the_file_alone(self, store, path):
        """Nothing changed, nothing written: the file has the same bytes."""
        store.write([build("a", ["one"])])
        before = path.read_bytes()
        store.write([build("a", ["one"])])
        assert path.read_bytes() == before

    def test_removed_rows_are_gone(self, store, path):
        """Removal leaves no row of the document but its token."""
        store.write([build("a", ["one"]), build("b", ["two"])])
        store.remove([Removal("a", 2)])
        for table in ("documents", "chunks", "entries"):
            assert {row[0] for row in raw(path, f"SELECT document_id FROM {table}")} == {"b"}
        assert raw(path, "FROM removed_documents") == [("a", 2)]

    def test_double_entries_stand_once(self, store, path):
        """The same entry given twice is one row."""
        given = build("a", ["one"])
        store.write([msgspec.structs.replace(given, entries=[*given.entries, *given.entries])])
        assert raw(path, "SELECT count(*) FROM entries") == [(1,)]

    def test_only_its_owner_may_read(self, store, path):
        """Folder, database and lock belong to the user alone."""
        store.write([build("a", ["one"])])
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file

    def test_reading_makes_no_file(self, store, path):
        """Looking into a store that does not exist leaves nothing behind."""
        search(store, "one")
        store.held_documents()
        store.drop()
        assert not path.parent.exists()

    def test_rewriting_does_not_grow_the_file_for_ever(self, store, path):
        """Space of replaced rows is used again."""
        sizes = []
        for version in range(12):
            store.write([build(f"d{i}", [f"{version} {i} {j} " * 100 for j in range(20)]) for i in range(20)])
            sizes.append(path.stat().st_size)
        assert sizes[-1] <= 3 * sizes[0]
        assert max(sizes[6:]) <= 1.2 * max(sizes[:6])

    def test_new_file_is_moved_in_place_whole(self, store, path):
        """What a crash left of an unfinished new file is in nobody's way."""
        path.parent.mkdir(parents=True)
        path.with_name("test.duckdb.new").write_bytes(b"half a file")
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]

    @pytest.mark.parametrize("room", [1, 12_288, 50_000, 280_000])
    def test_full_disk_while_the_file_is_made(self, store, path, room):
        """However much room there was, the store only is unavailable, and takes documents once there is enough."""
        with _room_for(room), pytest.raises(StoreUnavailableError):
            store.write([build("a", ["one"])])
        store.write([build("b", ["two"])])
        assert texts_of(store, "b") == ["two"]

    def test_log_of_a_lost_database_is_not_played(self, store, path):
        """A log whose database is gone is another's: the new store holds what was written into it."""
        store.write([build("a", ["one"])])
        with _room_for(path.stat().st_size), pytest.raises(StoreUnavailableError):
            store.write([build("c", [f"{i} " * 9_000 for i in range(40)])])
        path.unlink()
        assert path.with_name("test.duckdb.wal").exists()
        store.write([build("b", ["two"])])
        assert [texts_of(store, key) for key in "ab"] == [[], ["two"]]


@contextlib.contextmanager
def _room_for(n_bytes):
    """Files take so many bytes and no more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestErrors:
    @pytest.mark.parametrize("content", [b"", b"not a database", b"x" * 50_000])
    def test_file_that_is_no_database(self, store, path, content):
        """Another file in the store's place is named, kept, and never a surprise from DuckDB."""
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        for action in (lambda: search(store, "one"), lambda: store.write([build("a", ["one"])])):
            with pytest.raises(StoreCorruptError, match=r"'test'.*test\.duckdb"):
                action()
        assert path.read_bytes() == content

    def test_truncated_database(self, store, path):
        """A database cut short is corrupt, not unavailable: waiting would not help."""
        store.write([build(f"d{i}", ["text " * 1000]) for i in range(200)])
        path.write_bytes(path.read_bytes()[:300_000])
        with pytest.raises(StoreCorruptError):
            texts_of(store, "d1")

    def test_database_of_something_else(self, store, path):
        """A DuckDB file with other tables is not taken for a store."""
        path.parent.mkdir(parents=True)
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE mine (a INTEGER)").fetchall()
        with pytest.raises(StoreCorruptError):
            search(store, "one")

    def test_newer_schema(self, store, path):
        """A file of a newer program is left alone, with a clear message."""
        store.write([build("a", ["one"])])
        with duckdb.connect(str(path)) as connection:
            connection.execute("UPDATE store_meta SET schema_version = 99").fetchall()
        for action in (lambda: search(store, "one"), lambda: store.write([build("b", ["two"])]), store.held_documents):
            with pytest.raises(StoreTooNewError, match="99"):
                action()

    def test_locked_for_too_long(self, store, path):
        """Waiting is bounded; the message names the store and how long it waited."""
        store.write([build("a", ["one"])])
        impatient = DuckDBStore("test", path, STAMP, lock_timeout=0.2)
        with exclusive_lock(path.with_name("test.duckdb.lock"), 1):
            start = time.monotonic()
            for action in (lambda: search(impatient, "one"), lambda: impatient.write([build("b", ["two"])])):
                with pytest.raises(StoreUnavailableError, match=r"'test'.*0\.2 s"):
                    action()
            assert time.monotonic() - start < 20
        assert texts_of(impatient, "a") == ["one"]

    def test_database_opened_by_somebody_else(self, store, path):
        """A program that holds the database without our lock makes the store unavailable, not corrupt."""
        store.write([build("a", ["one"])])
        context = SPAWN.Event(), SPAWN.Event()
        process = SPAWN.Process(target=_hold_open, args=(str(path), *context), daemon=True)
        process.start()
        context[0].wait(20)
        with pytest.raises(StoreUnavailableError):
            store.write([build("b", ["two"])])
        context[1].set()
        process.join()

    def test_folder_that_cannot_be_made(self, tmp_path):
        """An unreachable place is told as such."""
        (tmp_path / "file").write_text("")
        store = DuckDBStore("test", tmp_path / "file" / "x.duckdb", STAMP)
        with pytest.raises(StoreUnavailableError):
            store.write([build("a", ["one"])])

    def test_lock_that_is_a_link_is_not_followed(self, store, path, tmp_path):
        """A symbolic link in the lock's place opens no other file."""
        path.parent.mkdir(parents=True)
        path.with_name("test.duckdb.lock").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreUnavailableError):
            store.write([build("a", ["one"])])
        assert not (tmp_path / "elsewhere").exists()


def _hold_open(path, opened, done) -> None:
    with duckdb.connect(path):
        opened.set()
        done.wait(20)


class TestIsolation:
    @pytest.mark.parametrize(
        "query",
        [
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "ATTACH '/tmp/other.duckdb'",
            "COPY documents TO '/tmp/stolen.csv'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '100GB'",
        ],
    )
    def test_nothing_but_its_own_file(self, store, query):
        """The connection reaches no other file, loads no extension, and nobody can change that."""
        store.write([build("a", ["one"])])
        with pytest.raises(StoreError) as caught, store._file.writing() as session:
            session.rows(query)
        assert isinstance(caught.value.__cause__, duckdb.Error)

    def test_python_variables_are_not_tables(self, store):
        """A name in a statement never means a variable of the program."""
        secrets = {"a": np.zeros(1)}
        store.write([build("a", ["one"])])
        with pytest.raises(StoreError), store._file.reading() as session:
            session.rows("SELECT * FROM secrets")
        assert secrets

    def test_failed_call_changes_nothing(self, store):
        """An exception anywhere inside a transaction leaves the store as it was."""
        store.write([build("a", ["one"])])
        with pytest.raises(StoreError), store._file.writing() as session:
            session.rows("DELETE FROM chunks; SELECT * FROM nowhere")
        assert texts_of(store, "a") == ["one"]


def whole_versions(path):
    """Check that each document is there whole, in one version; give the number of documents."""
    rows = raw(
        path,
        """
        SELECT document_id, n_chunks, n_entries, list_sort(list(chunks.text)),
               (SELECT count(*) FROM entries WHERE entries.document_id = documents.document_id)
        FROM documents JOIN chunks USING (document_id) GROUP BY ALL
        """,
    )
    for document_id, n_chunks, n_entries, texts, n_entry_rows in rows:
        version = next(int(text.split()[2]) for text in texts if text != "stays")
        assert texts == sorted(texts_at(version, document_id))
        assert n_chunks == n_entries == n_entry_rows == len(texts)
    return len(rows)


class TestProcesses:
    def test_two_writers_and_a_reader(self, store, path):
        """Processes take turns: no call fails, nothing is lost, and a reader never finds half a document."""
        writers = [SPAWN.Process(target=write_versions, args=(path, name, 8), daemon=True) for name in ("x", "y")]
        for writer in writers:
            writer.start()
        seen: set[str] = set()
        while any(writer.is_alive() for writer in writers):
            found = {hit.document_id for hit in search(store, "stays", 2 * N_DOCUMENTS)}
            assert found >= seen
            seen |= found
            time.sleep(0.02)
        assert [writer.exitcode for writer in writers] == [0, 0]
        assert whole_versions(path) == 2 * N_DOCUMENTS
        assert set(texts_of(store, "x3")) == set(texts_at(7, "x3"))

    def test_killed_writers_leave_whole_documents(self, store, path):
        """Ten writers killed at a random moment: the file opens, and each document is whole."""
        moments = random.Random(7)
        started = [SPAWN.Event() for _ in range(10)]
        # Daemons, so that a failing test leaves no writer behind.
        writers = [
            SPAWN.Process(target=write_for_ever, args=(path, f"w{i}-", started[i]), daemon=True) for i in range(10)
        ]
        # In twos, so that one may die while it waits for the other.
        for i in range(0, 10, 2):
            for writer in writers[i : i + 2]:
                writer.start()
            for writer, event in zip(writers[i : i + 2], started[i : i + 2], strict=True):
                assert event.wait(30)
                time.sleep(moments.uniform(0, 0.15))
                writer.kill()
                writer.join()
            assert whole_versions(path) == (i + 2) * N_DOCUMENTS
        assert not store.write([build("after", ["all"])])[0].fenced

    def test_readers_do_not_keep_a_writer_out(self, tmp_path):
        """A writer that waits goes before readers that come later."""
        lock = tmp_path / "lock"
        with shared_lock(lock, 1):
            with pytest.raises(TimeoutError), exclusive_lock(lock, 0.1):
                pass
            waiting = SPAWN.Event()
            writer = SPAWN.Process(target=_take_lock, args=(lock, waiting), daemon=True)
            writer.start()
            assert waiting.wait(20)
            with pytest.raises(TimeoutError):
                _read_again_and_again(lock, time.monotonic() + 5)
        writer.join()
        assert writer.exitcode == 0


def _read_again_and_again(lock, deadline) -> None:
    while time.monotonic() < deadline:
        with shared_lock(lock, 0.05):
            time.sleep(0.01)


def _take_lock(lock, waiting) -> None:
    waiting.set()
    with exclusive_lock(lock, 20):
        pass
