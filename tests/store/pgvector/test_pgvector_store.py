"""The pgvector store: the contract on a real PostgreSQL, and its own rows, texts and neighbours."""

import msgspec
import numpy as np
import psycopg
import pytest

from resources.artifact_store.artifact import Place
from resources.store.pgvector.pgvector_store import PgvectorStore
from resources.store.store import EmbedderStamp, Removal, Store, StoreConfigError
from tests.store.contract import StoreContract, build, search, texts_of
from tests.store.pgvector_server import STAMP
from tests.store.raw_rows import PgvectorRows, RawRows


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
