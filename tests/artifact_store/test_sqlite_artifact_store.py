"""The SQLite artifact store: the contract, and what is its own: its file, damage, crashes."""

import hashlib
import multiprocessing
import sqlite3
import stat
import threading
import time

import pytest
import zstandard

from resources.artifact_store.artifact_key import digest_of, generation_of
from resources.artifact_store.artifact_store import ArtifactStore, ArtifactStoreError
from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from tests.artifact_store.contract import ArtifactStoreContract, artifact
from tests.artifact_store.writer_process import put_for_ever

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "artifacts" / "artifacts.db"


@pytest.fixture
def store(path):
    return SqliteArtifactStore(path)


def execute(path, statement, values=()):
    """Do something to the file around the store."""
    connection = sqlite3.connect(path)
    rows = connection.execute(statement, values).fetchall()
    connection.commit()
    connection.close()
    return rows


class TestSqliteArtifactStore(ArtifactStoreContract):
    @pytest.fixture
    def store(self, path) -> ArtifactStore:
        """A store in a new file."""
        return SqliteArtifactStore(path)

    def reopened(self, store) -> ArtifactStore:
        """See ArtifactStoreContract."""
        return SqliteArtifactStore(store._path)


class TestFile:
    def test_key_is_the_hash_of_the_bytes(self, store, path):
        """The body, unpacked around the store, hashes to the key."""
        [key] = store.put_many([artifact()])
        [(stored, document_id, body)] = execute(path, "SELECT key, document_id, body FROM artifacts")
        assert stored == key
        assert digest_of(key) == hashlib.sha256(zstandard.ZstdDecompressor().decompress(body)).hexdigest()
        assert document_id == "a"

    def test_only_its_owner_may_read(self, store, path):
        """Folder and files belong to the user alone."""
        store.put_many([artifact()])
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}

    def test_each_commit_is_synced(self, store):
        """The file is written so that a power cut loses nothing that was returned."""
        assert store._file.connection.execute("PRAGMA synchronous").fetchone() == (2,)

    def test_file_of_before(self, store, path):
        """A file made before there were generations keeps its artifacts and their names, which belong to the first."""
        old = "4f5a3e3ee75e1415564a82bd964da37cab4affba78da10d299126f090ae5c193"
        store.put_many([artifact("a", "one"), artifact("b")])
        execute(path, "UPDATE artifacts SET key = ? WHERE document_id = 'a'", (old,))
        execute(path, "DROP INDEX artifacts_by_document")
        execute(path, "DROP TABLE generations")
        execute(path, "PRAGMA user_version=1")
        again = SqliteArtifactStore(path)
        assert again.get_many([old]) == {old: artifact("a", "one")}
        assert generation_of(old) == 0
        assert again.begin_generation() == 1
        again.remove_documents(["a"])
        assert len([kept for page in again.pages() for kept in page]) == 1

    def test_threads(self, store):
        """Many threads put and get at once."""
        failures = []

        def work(name: str) -> None:
            try:
                for i in range(20):
                    given = artifact(f"{name}-{i}")
                    [key] = store.put_many([given])
                    assert store.get_many([key]) == {key: given}
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


class TestDamage:
    @pytest.mark.parametrize(
        "body",
        [
            b"junk",
            b"",
            zstandard.compress(b"not the artifact"),
            zstandard.compress(b'{"document_id": "forged"}'),
            zstandard.compress(b"x" * 1000)[:-5],
        ],
    )
    def test_body_that_is_not_what_its_key_says(self, store, path, body):
        """A damaged or exchanged artifact counts as lost, is never a wrong text, and is mended by putting it again."""
        [key] = store.put_many([artifact()])
        execute(path, "UPDATE artifacts SET body = ?", (body,))
        assert store.get_many([key]) == {}
        assert store.put_many([artifact()]) == [key]
        assert store.get_many([key]) == {key: artifact()}

    def test_exchanged_artifacts(self, store, path):
        """An artifact under another's key counts as lost."""
        one, two = store.put_many([artifact("a"), artifact("b")])
        execute(path, "DELETE FROM artifacts WHERE key = ?", (one,))
        execute(path, "UPDATE artifacts SET key = ? WHERE key = ?", (one, two))
        assert store.get_many([one]) == {}

    def test_file_that_is_no_database(self, store, path):
        """Another file in the place is an error that names it, and keeps its bytes."""
        path.parent.mkdir()
        path.write_bytes(b"not a database" * 100)
        for call in (lambda: store.put_many([artifact()]), lambda: store.get_many(["x"]), lambda: store.read_hint("x")):
            with pytest.raises(ArtifactStoreError, match=str(path)):
                call()
        assert path.read_bytes() == b"not a database" * 100

    def test_newer_format(self, store, path):
        """A file of a later version is refused."""
        store.put_many([artifact()])
        execute(path, "PRAGMA user_version=99")
        with pytest.raises(ArtifactStoreError, match="format 99"):
            SqliteArtifactStore(path).get_many(["x"])

    def test_full_disk_keeps_nothing_and_passes(self, store, path):
        """A group that finds no room is kept not at all; once there is room the same store works."""
        store.put_many([artifact()])
        [(pages,)] = store._file.connection.execute("PRAGMA page_count").fetchall()
        store._file.connection.execute(f"PRAGMA max_page_count={pages + 3}")
        with pytest.raises(ArtifactStoreError, match="full"):
            store.put_many([artifact(f"d{i}", *(str(j * i) for j in range(1000))) for i in range(10)])
        store._file.connection.execute("PRAGMA max_page_count=1000000")
        assert execute(path, "SELECT count(*) FROM artifacts") == [(1,)]
        store.put_many([artifact("b")])


def test_killed_writer_loses_nothing_it_returned(path):
    """Kill a writer five times: every key it was given is readable, and each group is there whole or not at all."""
    for round_ in range(5):
        ours, theirs = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=put_for_ever, args=(path, str(round_), theirs))
        process.start()
        theirs.close()
        returned = list(ours.recv())
        time.sleep(0.01 * round_)
        process.kill()
        process.join()
        try:
            while True:
                returned += ours.recv()
        except (EOFError, OSError):
            pass
        found = SqliteArtifactStore(path).get_many(returned)
        assert set(found) == set(returned)
    assert execute(path, "SELECT count(*) % 20 FROM artifacts") == [(0,)]
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
