"""The pgvector store: the contract on a real PostgreSQL, and its own rows, locks, crashes and restarts."""

import multiprocessing
import os
import random
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import psycopg
import pytest

from resources.artifact_store.artifact import Place
from resources.store.open_store import open_store
from resources.store.pgvector import queries
from resources.store.pgvector import rows as pgvector_rows
from resources.store.pgvector.pgvector_store import PgvectorStore
from resources.store.store import (
    DocumentBuild,
    EmbedderStamp,
    Removal,
    Store,
    StoreConfigError,
    StoreCorruptError,
    StoreMismatchError,
    StoreTooNewError,
    StoreUnavailableError,
)
from tests.store.contract import StoreContract, build, search, texts_of
from tests.store.pgvector_server import STAMP, running_server
from tests.store.pgvector_writer_process import write_for_ever
from tests.store.raw_rows import PgvectorRows, RawRows
from tests.store.writer_process import N_DOCUMENTS, texts_at

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def server():
    with running_server() as server:
        yield server


@pytest.fixture
def schema(tmp_path):
    """A schema of the test's own, in a name that must be quoted."""
    return f"Test {tmp_path.parent.name} {tmp_path.name}"[-60:]


@pytest.fixture
def store(server, schema):
    return server.store(schema, lock_timeout=10)


@pytest.fixture
def raw(server, schema):
    """Ask the store's tables: `{chunks}` and its like stand for their names."""

    def rows(query):
        for table in ("meta", "fences", "documents", "entries", "chunks"):
            query = query.replace(f"{{{table}}}", f'"{schema}"."test_{table}"')
        return server.rows(query)

    return rows


class TestPgvectorStore(StoreContract):
    @pytest.fixture
    def store(self, server, schema) -> Store:
        """See `StoreContract.store`."""
        return server.store(schema)

    @pytest.fixture(autouse=True)
    def _remember(self, raw):
        self._raw = raw

    def rows(self, store) -> RawRows:
        """See `StoreContract.rows`."""
        return PgvectorRows(self._raw)

    def reopened(self, store, stamp) -> Store:
        """See `StoreContract.reopened`."""
        return PgvectorStore(store.slug, stamp, store._database._config)


class TestRows:
    def test_rows_are_what_was_given(self, store, raw):
        """The tables hold what was written, by PostgreSQL's own account."""
        given = build("a", ["one", "two"], headings=('H "1"', "{,}", ""), token=3)
        store.write([given])
        rows = raw("SELECT chunk_id, ordinal, text, headings, fencing_token, vector FROM {chunks} ORDER BY ordinal")
        assert [row[:5] for row in rows] == [
            (chunk.chunk_id, i, chunk.text, ['H "1"', "{,}", ""], 3) for i, chunk in enumerate(given.chunks)
        ]
        for row, chunk in zip(rows, given.chunks, strict=True):
            numbers = np.array(row[5].strip("[]").split(","), np.float32)
            assert numbers.tobytes() == given.vectors[chunk.chunk_id].tobytes()
        assert raw("SELECT document_id, n_chunks, n_entries, fencing_token FROM {documents}") == [("a", 2, 2, 3)]
        assert raw("SELECT count(*) FROM {entries}") == [(2,)]
        assert raw("SELECT * FROM {fences}") == [("a", 3)]
        assert raw("SELECT * FROM {meta}") == [(True, 2, "hash", "1", 64)]

    def test_kept_rows_keep_vector_and_token(self, store, raw):
        """A kept chunk's vector is the very one written first, even when its place changed."""
        store.write([build("a", ["one", "two"], token=1)])
        before = dict(raw("SELECT chunk_id, vector FROM {chunks}"))
        second = build("a", ["zero", "one", "two"], token=2)
        wrong = dict.fromkeys(second.vectors, np.ones(64, np.float32))
        store.write([msgspec.structs.replace(second, vectors=wrong)])
        after = {row[0]: row[1:] for row in raw("SELECT chunk_id, vector, fencing_token FROM {chunks}")}
        assert {key: after[key] for key in before} == {key: (vector, 1) for key, vector in before.items()}
        assert after[second.chunks[0].chunk_id][1] == 2

    def test_unchanged_write_leaves_every_row_alone(self, store, raw):
        """Nothing changed, nothing written: each row is the same version of itself."""
        store.write([build("a", ["one"])])
        versions = [raw(f"SELECT ctid, xmin FROM {{{table}}}") for table in ("documents", "chunks", "entries")]
        store.write([build("a", ["one"])])
        assert versions == [raw(f"SELECT ctid, xmin FROM {{{table}}}") for table in ("documents", "chunks", "entries")]

    def test_removed_rows_are_gone(self, store, raw):
        """Removal leaves no row of the document but its fence."""
        store.write([build("a", ["one"]), build("b", ["two"])])
        store.remove([Removal("a", 2)])
        for table in ("documents", "chunks", "entries"):
            assert {row[0] for row in raw(f"SELECT document_id FROM {{{table}}}")} == {"b"}
        assert raw("SELECT * FROM {fences} ORDER BY document_id") == [("a", 2), ("b", 1)]

    def test_double_entries_stand_once(self, store, raw):
        """The same entry given twice is one row."""
        given = build("a", ["one"])
        store.write([msgspec.structs.replace(given, entries=[*given.entries, *given.entries])])
        assert raw("SELECT count(*) FROM {entries}") == [(1,)]

    def test_reading_makes_nothing(self, store, server, schema):
        """Looking into a store that does not exist leaves nothing behind."""
        search(store, "one")
        store.held_documents()
        store.drop()
        assert server.rows(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == []

    def test_many_rows_go_in_several_copies(self, store, raw):
        """More rows than one COPY takes arrive all the same."""
        store.write([build("a", [f"text {i}" for i in range(5_001)])])
        assert raw("SELECT count(*), max(ordinal) FROM {chunks}") == [(5_001, 5_000)]
        assert raw("SELECT count(*) FROM {entries}") == [(5_001,)]

    @pytest.mark.parametrize("dimension", [1, 1_536, 1_537, 3_072, 16_000])
    def test_every_dimension(self, server, schema, dimension):
        """Vectors longer than an index could hold are stored and found, and so are the longest that stay in rows."""
        store = PgvectorStore("test", EmbedderStamp("wide", "1", dimension), server.store(schema)._database._config)
        given = build("d" * 96, ["one", "two"], headings=("H" * 3_000,))
        vectors = np.random.default_rng(1).standard_normal((2, dimension), dtype=np.float32)
        by_id = {chunk.chunk_id: vector for chunk, vector in zip(given.chunks, vectors, strict=True)}
        store.write([msgspec.structs.replace(given, vectors=by_id)])
        best = store.search(vectors[1], 2, org_id="default")[0]
        assert best.score == pytest.approx(1, abs=1e-4)
        assert dimension == 1 or best.text == "two"

    def test_too_wide_an_embedder(self, server, schema):
        """What the extension cannot hold is said before anything is written."""
        with pytest.raises(StoreConfigError, match="16000"):
            PgvectorStore("test", EmbedderStamp("wide", "1", 16_001), server.store(schema)._database._config)


class TestTexts:
    def test_what_postgresql_cannot_hold_is_replaced(self, store, raw):
        """NUL and lone surrogates become U+FFFD in every text, and the same document again changes nothing."""
        bad = "a\0b\ud800c"
        given = build("a", ["one", "two"], title=bad)
        place = Place(0, 1, headings=(bad,), sheet=bad)
        chunks = [given.chunks[0], msgspec.structs.replace(given.chunks[1], text=bad, place=place)]
        entries = [given.entries[0], msgspec.structs.replace(given.entries[1], text=bad)]
        given = msgspec.structs.replace(given, chunks=chunks, entries=entries)
        store.write([given])
        hit = next(hit for hit in search(store, "one") if hit.text != "one")
        good = "a\ufffdb\ufffdc"
        assert (hit.text, hit.title, hit.place.headings, hit.place.sheet) == (good, good, (good,), good)
        assert raw("SELECT text FROM {entries} WHERE text <> 'one'") == [(good,)]
        versions = raw("SELECT ctid FROM {chunks}")
        assert store.write([given])[0].n_kept == 2
        assert raw("SELECT ctid FROM {chunks}") == versions

    @pytest.mark.parametrize("field", ["document_id", "org_id", "source"])
    def test_names_are_never_changed(self, store, field):
        """A name PostgreSQL cannot hold is the document's fault, not the store's: two names must not become one."""
        with pytest.raises(ValueError, match="cannot hold"):
            store.write([msgspec.structs.replace(build("a", ["one"]), **{field: "a\0"})])
        assert store.held_documents() == []

    def test_id_too_long_for_an_index(self, store):
        """A limit of the database concerns the document that meets it."""
        with pytest.raises(ValueError, match="cannot hold"):
            store.write([build("".join(map(chr, range(300, 9_000))), ["one"])])
        assert store.held_documents() == []


class TestNeighbours:
    def test_stores_in_one_schema_are_apart(self, server, schema):
        """Stores share a schema and nothing else, however alike or long their names are."""
        slugs = ("a", "a_chunks", "A", "x" * 63, "x" * 62 + "y", 'quote"d')
        config = server.store(schema)._database._config
        stores = {slug: PgvectorStore(slug, STAMP, config) for slug in slugs}
        for slug, store in stores.items():
            store.write([build("d", [slug])])
        stores["a"].drop()
        for slug, store in stores.items():
            assert texts_of(store, "d") == ([] if slug == "a" else [slug])

    def test_extension_may_be_anywhere(self, server, schema):
        """The extension is found in whatever schema it was put, and no table elsewhere is mistaken for ours."""
        server.rows("CREATE DATABASE elsewhere")
        url = server.url_of("postgres", database="elsewhere")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute('CREATE SCHEMA "The Extensions"; CREATE EXTENSION vector SCHEMA "The Extensions"')
        store = server.store(schema, url=url)
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]

    def test_schema_made_by_an_administrator_is_enough(self, server, schema):
        """A role that may make nothing in the database but its tables in a schema of its own can write."""
        server.rows(f'CREATE EXTENSION IF NOT EXISTS vector; CREATE ROLE owner LOGIN; CREATE SCHEMA "{schema}"')
        server.rows(f'ALTER SCHEMA "{schema}" OWNER TO owner')
        store = server.store(schema, url=server.url_of("owner"))
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]

    def test_reader_needs_no_more_than_select(self, server, store, schema):
        """A role that may only read can search, and is told what it lacks when it writes."""
        store.write([build("a", ["one"])])
        server.rows(f'CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA "{schema}" TO reader')
        server.rows(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO reader')
        reader = server.store(schema, url=server.url_of("reader"))
        assert texts_of(reader, "a") == ["one"]
        with pytest.raises(StoreConfigError, match="permission denied"):
            reader.write([build("b", ["two"])])

    def test_role_that_may_make_schemas_makes_its_own(self, server, schema):
        """A role with CREATE on a database lacks the extension alone, and the message says so."""
        server.rows("CREATE ROLE maker LOGIN")
        server.rows("CREATE DATABASE fresh")
        server.rows("GRANT CREATE ON DATABASE fresh TO maker")
        store = server.store(schema, url=server.url_of("maker", database="fresh"))
        with pytest.raises(StoreConfigError, match="administrator run CREATE EXTENSION vector"):
            store.write([build("a", ["one"])])
        with psycopg.connect(server.url_of("postgres", database="fresh")) as connection:
            connection.execute("CREATE EXTENSION vector")
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]


class TestErrors:
    def test_newer_format(self, store, raw):
        """Tables of a newer program are left alone, with a clear message."""
        store.write([build("a", ["one"])])
        raw("UPDATE {meta} SET format_version = 99")
        for action in (
            lambda: search(store, "one"),
            lambda: store.write([build("b", ["two"])]),
            lambda: store.remove([Removal("a", 2)]),
            store.held_documents,
        ):
            with pytest.raises(StoreTooNewError, match=r"'test'.*99"):
                action()

    @pytest.mark.parametrize("damage", ["DELETE FROM {meta}", "ALTER TABLE {meta} RENAME dimension TO d"])
    def test_tables_of_something_else(self, store, raw, damage):
        """Tables that are not ours are not taken for a store."""
        store.write([build("a", ["one"])])
        raw(damage)
        for action in (lambda: search(store, "one"), lambda: store.write([build("b", ["two"])])):
            with pytest.raises(StoreCorruptError, match="'test'"):
                action()

    def test_missing_table(self, store, raw):
        """A table that somebody took away is damage, not an empty store."""
        store.write([build("a", ["one"])])
        raw("DROP TABLE {chunks}")
        with pytest.raises(StoreCorruptError, match="test_chunks"):
            search(store, "one")

    def test_locked_for_too_long(self, store, server, schema, raw):
        """Waiting for another writer is bounded; readers do not wait at all."""
        store.write([build("a", ["one"])])
        impatient = server.store(schema, lock_timeout=0.2)
        with psycopg.connect(server.url) as other:
            other.execute(f'SELECT * FROM "{schema}".test_fences FOR UPDATE')
            start = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="lock timeout"):
                impatient.write([build("a", ["two"], token=2)])
            assert time.monotonic() - start < 5
            assert texts_of(impatient, "a") == ["one"]
        assert not impatient.write([build("a", ["two"], token=2)])[0].fenced

    def test_statement_that_takes_too_long(self, server, schema):
        """A statement has an end, and the next call works again."""
        store = server.store(schema, statement_timeout=0.2)
        with pytest.raises(StoreUnavailableError, match="statement timeout"), store._database.preparing() as session:
            session.rows("SELECT pg_sleep(5)")
        with store._database.preparing() as session:
            assert session.rows("SELECT 1") == [(1,)]

    @pytest.mark.parametrize(
        ("state", "meaning"),
        [
            ("53100", StoreUnavailableError),  # disk full
            ("53300", StoreUnavailableError),  # too many connections
            ("40P01", StoreUnavailableError),  # deadlock
            ("40001", StoreUnavailableError),  # serialization
            ("57P01", StoreUnavailableError),  # shutdown
            ("25006", StoreUnavailableError),  # a standby
            ("08006", StoreUnavailableError),  # connection failure
            ("42501", StoreConfigError),  # permission
            ("58P01", StoreConfigError),  # no such extension, older servers
            ("0A000", StoreConfigError),  # no such extension
            ("3D000", StoreConfigError),  # no such database
            ("28P01", StoreConfigError),  # wrong password
            ("XX001", StoreCorruptError),  # damaged data
            ("42P01", StoreCorruptError),  # no such table
            ("54000", ValueError),  # larger than a limit
            ("22021", ValueError),  # not text
        ],
    )
    def test_what_errors_mean(self, store, state, meaning):
        """Whether trying again can help is a type, from the state PostgreSQL gives and not from its words."""
        with pytest.raises(meaning, match="Store 'test'") as caught, store._database.preparing():
            raise psycopg.errors.lookup(state)("what happened")
        assert type(caught.value) is meaning

    def test_extension_is_not_installed(self, store):
        """The message says what to do on the server."""
        with pytest.raises(StoreConfigError, match="Install pgvector"), store._database.preparing() as session:
            session.rows("CREATE EXTENSION no_such_extension")


class TestAddress:
    def test_unreachable_may_heal(self, server, schema):
        """A server that is not there is waited for, and named."""
        for url in ("postgresql://127.0.0.1:1/db", "postgresql:///db?host=/nowhere"):
            with pytest.raises(StoreUnavailableError, match="database 'db' at "):
                server.store(schema, url=url).held_documents()

    def test_what_only_a_person_can_correct(self, server, schema):
        """A missing database, role or permission is told as such, with what to do."""
        server.rows("CREATE ROLE nothing LOGIN")
        for url, message in (
            (server.url_of("postgres", database="nope"), 'database "nope" does not exist.*Correct'),
            (server.url_of("nobody"), 'role "nobody" does not exist.*Correct'),
            (server.url_of("nothing"), "permission denied.*CREATE SCHEMA"),
        ):
            with pytest.raises(StoreConfigError, match=message):
                server.store(schema, url=url).write([build("a", ["one"])])

    def test_environment_names_the_database(self, server, schema, monkeypatch):
        """Opening looks at nothing; the first call says which variable is missing, and a later one finds it."""
        store = open_store("pgvector", "legal", STAMP, {"dsn_env": "LEGAL_DB", "schema": schema})
        with pytest.raises(StoreConfigError, match=r"'legal'.*LEGAL_DB"):
            store.held_documents()
        monkeypatch.setenv("LEGAL_DB", server.url)
        assert store.held_documents() == []

    def test_missing_driver_is_named(self, monkeypatch):
        """Without the package a kind needs, the message says which one, and how it is had."""
        from resources.plug_ins import PlugIns
        from resources.store import open_store as module

        monkeypatch.setattr(module, "_KINDS", PlugIns(module.GROUP, {"pgvector": "no_such_driver:Store"}))
        with pytest.raises(StoreConfigError, match=r"'no_such_driver'.*ingest-assets\[pgvector\]"):
            open_store("pgvector", "legal", STAMP, {})

    @pytest.mark.parametrize(
        "config", [{"statement_timeout": 0}, {"lock_timeout": -1}, {"schema": 3}, {"index": "hnsw"}]
    )
    def test_wrong_options(self, config):
        """Options are checked when the store is opened."""
        with pytest.raises(StoreConfigError, match="'legal'"):
            open_store("pgvector", "legal", STAMP, config)


class TestSecrets:
    SECRET = "hunter2-is-secret"

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://user:{secret}@host/db",
            "postgresql://user@host/db?password={secret}",
            "host=host password={secret}",
            "postgresql://user:{secret}@host:port/db",
            "{secret} and some words",
            "postgresql://user@host/db?no_such_option={secret}",
        ],
    )
    def test_option_url_holds_none(self, url, caplog):
        """A password in the configuration is refused without being repeated, and so is what cannot be read."""
        with pytest.raises(StoreConfigError, match="'url'") as caught:
            open_store("pgvector", "legal", STAMP, {"url": url.replace("{secret}", self.SECRET)})
        self._assert_silent(caught, caplog)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://user:{secret}@127.0.0.1:1/db",
            "postgresql://user:{secret}@host:port/db",
            "postgresql://user:{secret}@host/db?no_such_option={secret}",
            "password={secret} dbname={secret}",
            "{secret}",
        ],
    )
    def test_environment_is_never_shown(self, url, monkeypatch, caplog):
        """Whatever stands in the variable, no message, cause or log repeats a password."""
        monkeypatch.setenv("INGEST_PGVECTOR_URL", url.replace("{secret}", self.SECRET))
        monkeypatch.setenv("PGHOST", "/nowhere")
        store = open_store("pgvector", "legal", STAMP, {})
        with caplog.at_level("DEBUG"), pytest.raises((StoreConfigError, StoreUnavailableError)) as caught:
            store.held_documents()
        self._assert_silent(caught, caplog)

    def test_wrong_password(self, server, schema, monkeypatch, caplog):
        """A refused password needs a person and is not shown; the right one counts from the next call on."""
        server.rows("CREATE ROLE guarded LOGIN PASSWORD 'correct-horse'")
        server.ask_for_password("guarded")
        monkeypatch.setenv("INGEST_PGVECTOR_URL", server.url_of("guarded", self.SECRET))
        store = server.store(schema, url="")
        with caplog.at_level("DEBUG"), pytest.raises(StoreConfigError, match="authentication failed") as caught:
            store.held_documents()
        self._assert_silent(caught, caplog)
        monkeypatch.setenv("INGEST_PGVECTOR_URL", server.url_of("guarded", "correct-horse"))
        assert store.held_documents() == []
        monkeypatch.delenv("INGEST_PGVECTOR_URL")
        monkeypatch.setenv("PGPASSWORD", "correct-horse")
        assert server.store(schema, url=server.url_of("guarded")).held_documents() == []

    def _assert_silent(self, caught, caplog):
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
        assert self.SECRET not in shown


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


class TestConnections:
    def test_calls_share_a_connection(self, store, raw):
        """One call after another opens one connection."""
        store.write([build("a", ["one"])])
        before = _connections_of_ingest(raw)
        for _ in range(5):
            search(store, "one")
        assert _connections_of_ingest(raw) == before

    def test_old_connections_are_not_trusted(self, store, monkeypatch):
        """A connection that was silent for long is replaced: a firewall may have forgotten it."""
        from resources.store.pgvector import connections as pgvector_connections

        store.write([build("a", ["one"])])
        [idle] = store._database._connections._idle
        monkeypatch.setattr(pgvector_connections, "_KEPT_SECONDS", 0)
        search(store, "one")
        assert idle.connection.closed

    def test_forked_child_has_its_own(self, store):
        """A child leaves its parent's connection alone, and both go on."""
        store.write([build("a", ["one"])])
        child = os.fork()
        if child == 0:
            os._exit(0 if texts_of(store, "a") == ["one"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert texts_of(store, "a") == ["one"]

    def test_restart_between_two_calls(self, server, store):
        """The call after a restart works, although its connection died, and finds what was committed before.

        The server is stopped as by a crash, and its default is not to wait for the disk.
        """
        store.write([build("a", ["one"])])
        server.stop()
        server.start()
        assert texts_of(store, "a") == ["one"]
        assert not store.write([build("a", ["two"], token=2)])[0].fenced

    def test_server_stops_in_the_middle_of_a_write(self, server, store, monkeypatch):
        """It may heal, nothing is changed, and the same call works once the server is back."""
        store.write([build("a", ["one"]), build("b", ["one"])])
        rows = pgvector_rows.entry_rows

        def stop_first(entries):
            server.stop()
            return rows(entries)

        with monkeypatch.context() as patch:
            patch.setattr(pgvector_rows, "entry_rows", stop_first)
            with pytest.raises(StoreUnavailableError, match="'test'"):
                store.write([build("a", ["two"], token=2), build("b", ["two"], token=2)])
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            search(store, "one")
        server.start()
        assert (texts_of(store, "a"), texts_of(store, "b")) == (["one"], ["one"])
        assert [result.n_written for result in store.write([build("a", ["two"], token=2)])] == [1]


def _connections_of_ingest(raw):
    return set(raw("SELECT pid FROM pg_stat_activity WHERE application_name = 'ingest'"))
