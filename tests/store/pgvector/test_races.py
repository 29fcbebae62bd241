"""Writers and readers at once, and what is left when some of them are killed."""

import multiprocessing
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from resources.store.pgvector import queries
from resources.store.store import DocumentBuild, Removal, StoreMismatchError
from tests.store.contract import build, search, texts_of
from tests.store.pgvector_writer_process import write_for_ever
from tests.store.writer_process import N_DOCUMENTS, texts_at

SPAWN = multiprocessing.get_context("spawn")


def whole_versions(raw) -> int:
    """Check that each document is there whole, in one version; give the number of documents."""
    rows = raw("""
        SELECT document_id, n_chunks, n_entries, array_agg(chunks.text ORDER BY chunks.text COLLATE "C"),
               (SELECT count(*) FROM {entries} AS entries WHERE entries.document_id = documents.document_id)
        FROM {documents} AS documents JOIN {chunks} AS chunks USING (document_id) GROUP BY document_id
    """)
    for document_id, n_chunks, n_entries, texts, n_entry_rows in rows:
        assert texts == sorted(texts_at(_version_of(texts), document_id))
        assert n_chunks == n_entries == n_entry_rows == len(texts)
    return len(rows)


def _version_of(texts) -> int:
    return next(int(text.split()[2]) for text in texts if text != "stays")


def _version(token: int) -> list[DocumentBuild]:
    ids = [f"d{i}" for i in range(N_DOCUMENTS)]
    # Each writer names the documents in another order, as claims do.
    random.Random(token).shuffle(ids)
    return [build(document_id, texts_at(token, document_id), token=token) for document_id in ids]


class TestWritersAtOnce:
    def test_first_use_by_many(self, server, schema):
        """Whoever comes first makes schema and tables; the others find them."""
        start = threading.Barrier(6)

        def write(name):
            start.wait(20)
            return server.store(schema).write([build(name, ["one"])])[0].fenced

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(write, "abcdef")) == [False] * 6
        assert [held.document_id for held in server.store(schema).held_documents()] == list("abcdef")

    def test_tokens_decide(self, server, schema, store, raw):
        """Writers of the same documents at once: the newest claim stands whole, and no reader sees half of one."""
        store.write(_version(1))
        tokens = list(range(2, 14))
        random.Random(3).shuffle(tokens)
        done = threading.Event()

        def read():
            seen = 0
            reader = server.store(schema)
            while not done.is_set():
                texts = texts_of(reader, "d3")
                version = _version_of(texts)
                assert texts == sorted(texts_at(version, "d3"))
                assert version >= seen
                seen = version

        with ThreadPoolExecutor(5) as threads:
            reading = threads.submit(read)
            try:
                written = threads.map(lambda token: server.store(schema).write(_version(token)), tokens)
                results = dict(zip(tokens, written, strict=True))
            finally:
                done.set()
            reading.result()
        assert not any(result.fenced for result in results[13])
        assert any(result.fenced for token in tokens for result in results[token])
        # All documents of a call are taken together, so a call is fenced as a whole or not at all.
        assert all(len({result.fenced for result in results[token]}) == 1 for token in tokens)
        assert whole_versions(raw) == N_DOCUMENTS
        assert set(raw("SELECT fencing_token FROM {documents}")) == {(13,)}

    def test_removal_and_late_writers(self, server, schema, store):
        """A removal that races with older writers wins, whoever comes first."""
        store.write(_version(1))
        removals = [Removal(f"d{i}", 9) for i in range(N_DOCUMENTS)]
        with ThreadPoolExecutor(4) as threads:
            writing = [threads.submit(server.store(schema).write, _version(token)) for token in (5, 6, 7)]
            removed = threads.submit(server.store(schema).remove, removals).result()
            for write in writing:
                write.result()
        assert not any(result.fenced for result in removed)
        assert store.held_documents() == []

    def test_dropped_while_others_write(self, server, schema, store):
        """A drop between two writes costs what was there, never an error of the tables."""
        stop = threading.Event()

        def write(name):
            mine = server.store(schema)
            for i in range(1000):
                if stop.is_set():
                    break
                mine.write([build(name, texts_at(i, name), token=i)])

        with ThreadPoolExecutor(2) as threads:
            writing = [threads.submit(write, name) for name in "ab"]
            try:
                for _ in range(5):
                    time.sleep(0.05)
                    store.drop()
                    store.held_documents()
            finally:
                stop.set()
            for write_done in writing:
                write_done.result()

    def test_reader_sees_one_moment(self, store):
        """What is committed while a reader is at work comes after it."""
        store.write([build("a", ["one"])])
        with store._database.reading() as session:
            before = session.rows(queries.SELECT_HELD_CHUNKS, {"document_ids": ["a"]})
            store.write([build("a", ["two"], token=2)])
            assert session.rows(queries.SELECT_HELD_CHUNKS, {"document_ids": ["a"]}) == before
        assert texts_of(store, "a") == ["two"]

    def test_reader_that_waited_for_a_takeover(self, server, schema, store):
        """Who had to wait for the tables sees what became of them, not what was there before."""
        store.write([build("a", ["one"])])
        with psycopg.connect(server.url) as other, ThreadPoolExecutor(1) as threads:
            other.execute(f'LOCK TABLE "{schema}".test_meta')
            other.execute(f"""UPDATE "{schema}".test_meta SET embedder_name = 'other'""")
            searching = threads.submit(search, store, "one")
            while server.rows("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(0,)]:
                time.sleep(0.01)
            other.commit()
            with pytest.raises(StoreMismatchError):
                searching.result()

    def test_killed_writers_leave_whole_documents(self, server, schema, store, raw):
        """Writers killed at a random moment: each document is whole, and its rows are free for the next."""
        moments = random.Random(7)
        started = [SPAWN.Event() for _ in range(4)]
        # Daemons, so that a failing test leaves no writer behind.
        writers = [
            SPAWN.Process(target=write_for_ever, args=(server.url, schema, f"w{i}-", event), daemon=True)
            for i, event in enumerate(started)
        ]
        for writer in writers:
            writer.start()
        for writer, event in zip(writers, started, strict=True):
            assert event.wait(60)
            time.sleep(moments.uniform(0, 0.15))
            writer.kill()
            writer.join()
        assert whole_versions(raw) == 4 * N_DOCUMENTS
        ids = [f"w{i}-{j}" for i in range(4) for j in range(N_DOCUMENTS)]
        results = store.write([build(document_id, texts_at(0, document_id), token=10**9) for document_id in ids])
        assert not any(result.fenced for result in results)
        assert whole_versions(raw) == 4 * N_DOCUMENTS
