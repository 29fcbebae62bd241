"""The OpenSearch store: the contract on a server of its protocol, and its own rows.

The server executes no k-NN query. What the store asks for then is compared with the documented form, field by field, in
`test_requests`; everything else here is executed.
"""

import msgspec
import numpy as np
import pytest

from resources.embedder.embedder import EmbedderStamp
from resources.store.opensearch.index import vector_name
from resources.store.opensearch.opensearch_store import OpenSearchStore
from resources.store.store import Removal, Store, StoreCorruptError
from tests.store.contract import StoreContract, build, search, texts_of
from tests.store.opensearch_server import STAMP
from tests.store.raw_rows import OpenSearchRows, RawRows

FIELD = vector_name(STAMP)


class TestOpenSearchStore(StoreContract):
    @pytest.fixture
    def store(self, server) -> Store:
        """See `StoreContract.store`."""
        return server.store()

    @pytest.fixture(autouse=True)
    def _remember(self, server):
        self._server = server

    def rows(self, store) -> RawRows:
        """See `StoreContract.rows`."""
        return OpenSearchRows(self._server, store)

    def reopened(self, store, stamp) -> Store:
        """See `StoreContract.reopened`."""
        return OpenSearchStore(store.slug, stamp, store._config)


class TestRows:
    def test_rows_are_what_was_given(self, store, server, prefix):
        """The index holds what was written, by the server's own account, and says what it is."""
        given = build("a", ["one", "two"], headings=("H",), token=3)
        store.write([given])
        rows = sorted(server.rows(store, "chunk"), key=lambda row: row["ordinal"])
        assert [(r["chunk_id"], r["text"], r["place"]["headings"], r["fencing_token"]) for r in rows] == [
            (chunk.chunk_id, chunk.text, ["H"], 3) for chunk in given.chunks
        ]
        for row, chunk in zip(rows, given.chunks, strict=True):
            assert np.array(row[FIELD], np.float32).tobytes() == given.vectors[chunk.chunk_id].tobytes()
        [head] = server.rows(store, "head")
        assert (head["fencing_token"], head["n_chunks"], head["n_entries"], head["removed"]) == (3, 2, 2, False)
        assert {row["generation"] for row in rows} == {head["generation"]}
        assert len(server.rows(store, "entry")) == 2
        [mapping] = server.ask("GET", f"/{prefix}-test/_mapping").values()
        meta = mapping["mappings"]["_meta"]
        assert (meta["format_version"], meta["store"], meta["embedder"]["name"]) == (2, "test", "hash")
        assert mapping["mappings"]["dynamic"] == "strict"

    def test_kept_chunks_keep_their_vector(self, store, server):
        """A kept chunk's vector is the very one written first, whatever is given for it, even when it moved."""
        store.write([build("a", ["one", "two"])])
        before = {row["chunk_id"]: row[FIELD] for row in server.rows(store, "chunk")}
        second = build("a", ["zero", "one", "two"], token=2)
        wrong = dict.fromkeys(second.vectors, np.ones(64, np.float32))
        store.write([msgspec.structs.replace(second, vectors=wrong)])
        after = {row["chunk_id"]: row[FIELD] for row in server.rows(store, "chunk")}
        assert {key: after[key] for key in before} == before
        assert len(after) == 3

    def test_unchanged_write_leaves_every_row_alone(self, store, server):
        """Nothing changed, nothing written; a new claim or title writes the head alone."""
        store.write([build("a", ["one"])])
        first = server.rows(store)
        store.write([build("a", ["one"])])
        assert server.rows(store) == first
        store.write([build("a", ["one"], token=2, title="New")])
        assert [row for row in server.rows(store) if row["kind"] != "head"] == [r for r in first if r["kind"] != "head"]
        assert [hit.title for hit in search(store, "one")] == ["New"]

    def test_old_rows_are_gone(self, store, server):
        """Changing leaves the new rows alone, removing leaves the head alone, with its token."""
        store.write([build("a", ["one", "two"])])
        store.write([build("a", ["one", "three"], token=2)])
        assert len(server.rows(store)) == 5
        store.remove([Removal("a", 3)])
        [head] = server.rows(store)
        assert (head["removed"], head["fencing_token"], head["generation"]) == (True, 3, "")

    def test_double_entries_stand_once(self, store, server):
        """The same entry given twice is one row."""
        given = build("a", ["one"])
        store.write([msgspec.structs.replace(given, entries=[*given.entries, *given.entries])])
        assert len(server.rows(store, "entry")) == 1
        assert store.held_documents()[0].n_entries == 1

    def test_reading_makes_nothing(self, store, server, prefix):
        """Looking into a store that does not exist leaves nothing behind."""
        search(store, "one")
        store.held_documents()
        store.drop()
        assert server.ask("GET", f"/_cat/indices/{prefix}*?format=json") == []

    def test_many_rows_go_in_several_requests(self, store, server):
        """More rows than a request or a page takes arrive all the same."""
        store.write([build("a", [f"text {i}" for i in range(2_500)])])
        assert len(server.rows(store, "chunk")) == 2_500
        assert len(store.held_chunks(["a"])["a"]) == 2_500
        assert store.write([build("a", [f"text {i}" for i in range(1, 2_500)])])[0].n_kept == 2_499

    def test_pages_end_between_rows_of_one_chunk(self, store, server):
        """Rows that stand at the same place are on one page or the next, none on both and none on neither."""
        given = build("a", ["one"])
        [entry] = given.entries
        entries = [msgspec.structs.replace(entry, entry_id=f"e{i}") for i in range(2_100)]
        given = msgspec.structs.replace(given, entries=entries)
        store.write([given])
        first = server.rows(store)
        store.write([given])
        assert server.rows(store) == first
        assert len(first) == 2_102

    def test_pages_of_many_documents(self, store):
        """More documents than a page takes are counted each."""
        store.write([build(f"d{i:04}", ["one"]) for i in range(1_200)])
        held = store.held_documents()
        assert [h.document_id for h in held] == [f"d{i:04}" for i in range(1_200)]
        assert {(h.n_chunks, h.n_entries) for h in held} == {(1, 1)}
        assert len(store.held_documents(limit=1_100)) == 1_100

    def test_lost_rows_are_seen_and_made_good(self, store, server, prefix):
        """Rows somebody took away are missing in the account, and the next write brings them back."""
        given = build("a", ["one", "two"])
        store.write([given])
        lost = server.rows(store, "chunk")[0]
        server.ask(
            "POST", f"/{prefix}-test/_delete_by_query?refresh=true", {"query": {"ids": {"values": [lost["id"]]}}}
        )
        assert store.held_documents()[0].n_chunks == 1
        assert store.held_chunks(["a"])["a"] == {c.chunk_id for c in given.chunks} - {lost["chunk_id"]}
        [result] = store.write([given])
        assert (result.n_written, result.n_kept) == (1, 1)
        assert texts_of(store, "a") == ["one", "two"]

    def test_lone_surrogates_are_replaced(self, store):
        """What is no Unicode text becomes U+FFFD, and the same document again changes nothing."""
        given = build("a", ["one"])
        given = msgspec.structs.replace(given, chunks=[msgspec.structs.replace(given.chunks[0], text="a\ud800b")])
        store.write([given])
        assert texts_of(store, "a") == ["a\ufffdb"]
        assert store.write([given])[0].n_kept == 1

    def test_several_shards(self, server):
        """Documents on many shards are found, counted, changed and removed like those on one."""
        store = server.store(shards=5)
        builds = [build(f"d{i:02}", [f"text {i}", "same"]) for i in range(40)]
        store.write(builds)
        assert [hit.document_id for hit in search(store, "same", 40)] == [f"d{i:02}" for i in range(40)]
        store.write([build(f"d{i:02}", [f"text {i}"], token=2) for i in range(40)])
        store.remove([Removal(f"d{i:02}", 3) for i in range(20)])
        assert [(held.document_id, held.n_chunks) for held in store.held_documents()] == [
            (f"d{i:02}", 1) for i in range(20, 40)
        ]
        assert len(server.rows(store)) == 20 + 20 * 3

    def test_stores_are_apart(self, server, store):
        """Stores share a cluster and nothing else, and one's name in another's place is noticed."""
        for slug in ("a", "a-b", "a.b"):
            server.store(slug).write([build("d", [slug])])
        server.store("a").drop()
        assert [texts_of(server.store(slug), "d") for slug in ("a", "a-b", "a.b")] == [[], ["a-b"], ["a.b"]]

    def test_name_that_is_another_stores(self, server, prefix, monkeypatch):
        """Prefix and slug that make another store's name are refused."""
        server.store("a-b").write([build("d", ["one"])])
        monkeypatch.setenv("INGEST_INDEX_PREFIX", f"{prefix}-a")
        with pytest.raises(StoreCorruptError, match="is store 'a-b'"):
            search(server.store("b"), "one")

    def test_zero_vector_is_nearer_than_an_opposite_one(self, store):
        """A zero vector scores 0, which is more than a negative cosine, however few are asked for."""
        given = build("a", ["one", "two"])
        query = np.ones(64, np.float32)
        vectors = {given.chunks[0].chunk_id: -query, given.chunks[1].chunk_id: np.zeros(64, np.float32)}
        store.write([msgspec.structs.replace(given, vectors=vectors)])
        found = store.search(query, 1, org_id="default") + store.search(query, 5, org_id="default")
        assert [(hit.text, hit.score) for hit in found] == [("two", 0), ("two", 0), ("one", pytest.approx(-1))]

    def test_takeover_keeps_tokens(self, server, store):
        """Another embedder takes an empty store over, and a late writer of a removed document is still refused."""
        store.write([build("a", ["one"])])
        store.remove([Removal("a", 5)])
        other = OpenSearchStore("test", EmbedderStamp("other", "2", 64), store._config)
        assert other.write([build("a", ["late"], token=4)])[0].fenced
        other.write([build("b", ["two"])])
        assert texts_of(other, "b") == ["two"]
