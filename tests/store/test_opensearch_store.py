"""The OpenSearch store: the contract on a server of its protocol, and its own rows, heads, races and faults.

The server executes no k-NN query. What the store asks for then is compared with the documented form, field by field, in
`test_opensearch_requests`; everything else here is executed.
"""

import multiprocessing
import os
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest

from resources.embedder.embedder import EmbedderStamp
from resources.store.open_store import open_store
from resources.store.opensearch.index import vector_name
from resources.store.opensearch.opensearch_store import OpenSearchStore
from resources.store.store import (
    Removal,
    RowFault,
    Store,
    StoreChangedError,
    StoreConfigError,
    StoreCorruptError,
    StoreMismatchError,
    StoreTooNewError,
    StoreUnavailableError,
)
from tests.servers.exchange import Answer
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import answer, cut_after, cut_before
from tests.servers.osmem_server import osmem_server
from tests.store.contract import StoreContract, build, search, texts_of
from tests.store.opensearch_server import (
    STAMP,
    OpenSearchServer,
    before,
    bulk_of,
    json_answer,
    path_has,
    refused_items,
)
from tests.store.opensearch_writer_process import write_for_ever
from tests.store.raw_rows import OpenSearchRows, RawRows
from tests.store.writer_process import N_DOCUMENTS, texts_at

SPAWN = multiprocessing.get_context("spawn")
FIELD = vector_name(STAMP)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with osmem_server(tmp_path_factory.mktemp("osmem")) as url:
        yield url


@pytest.fixture
def prefix(monkeypatch):
    """A prefix no index's name has yet."""
    prefix = f"t{uuid.uuid4().hex[:12]}"
    monkeypatch.setenv("INGEST_INDEX_PREFIX", prefix)
    return prefix


@pytest.fixture
def server(url, prefix):
    with FaultProxy(url) as proxy:
        yield OpenSearchServer(url, proxy)
        assert proxy.pending() == 0


@pytest.fixture
def store(server) -> OpenSearchStore:
    return server.store()


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


class TestGenerations:
    def test_death_between_rows_and_head(self, store, server):
        """Readers keep the old document whole; what was left is named, and removed by the next write."""
        store.write([build("a", ["one", "two"])])
        server.proxy.inject(cut_before(), bulk_of("head"))
        with pytest.raises(StoreUnavailableError):
            store.write([build("a", ["three"], token=2)])
        assert len(server.rows(store, "chunk")) == 3
        assert texts_of(store, "a") == ["one", "two"]
        assert [h.n_chunks for h in store.held_documents()] == [2]
        assert store.held_contents(["a"])["a"].faults == {RowFault.UNSEEN: 2}
        assert store.held_chunks(["a"])["a"] == {c.chunk_id for c in build("a", ["one", "two"]).chunks}
        store.write([build("a", ["one", "two"], token=3)])
        assert sorted(row["text"] for row in server.rows(store, "chunk")) == ["one", "two"]

    def test_death_before_the_first_head(self, store, server):
        """A document that never got a head is not there, and its removal takes the rows as well."""
        server.proxy.inject(cut_before(), bulk_of("head"))
        with pytest.raises(StoreUnavailableError):
            store.write([build("a", ["one"], token=2)])
        assert store.held_documents() == []
        assert search(store, "one") == []
        assert (store.held_ids(), store.held_contents(["a"])["a"].faults) == (["a"], {RowFault.UNSEEN: 2})
        store.remove([Removal("a", 2)])
        assert [row["kind"] for row in server.rows(store)] == ["head"]

    def test_death_before_old_rows_are_deleted(self, store, server):
        """Old rows that stayed are seen by nobody, and the next write removes them though nothing else changed."""
        store.write([build("a", ["one"])])
        server.proxy.inject(cut_before(), path_has("_delete_by_query"))
        store.write([build("a", ["two"], token=2)])
        assert len(server.rows(store, "chunk")) == 2
        assert texts_of(store, "a") == ["two"]
        store.write([build("a", ["two"], token=3)])
        assert [row["text"] for row in server.rows(store, "chunk")] == ["two"]

    def test_reply_of_the_head_is_lost(self, store, server):
        """It may heal is said; the document stands, and writing it again writes nothing twice."""
        server.proxy.inject(cut_after(), bulk_of("head"))
        with pytest.raises(StoreUnavailableError):
            store.write([build("a", ["one"])])
        first = server.rows(store)
        assert [r.n_written for r in store.write([build("a", ["one"])])] == [0]
        assert server.rows(store) == first

    def test_head_that_is_sent_again_is_recognised(self, store, server):
        """A proxy says 503 though the server did it: the second try meets its own head, and that is success."""
        store.write([build("a", ["one"])])

        def done_and_denied(request, forward):
            forward()
            return Answer(503, b"{}", [("Content-Type", "application/json")])

        server.proxy.inject(done_and_denied, bulk_of("head"))
        [result] = store.write([build("a", ["two"], token=2)])
        assert (result.fenced, result.n_written) == (False, 1)
        assert texts_of(store, "a") == ["two"]
        assert len(server.rows(store, "chunk")) == 1

    def test_late_writer_is_refused_by_the_head(self, store, server):
        """A writer that was overtaken between rows and head is fenced; its rows are seen by nobody."""
        store.write([build("a", ["one"])])
        overtake = before(lambda: server.store().write([build("a", ["new"], token=9)]))
        server.proxy.inject(overtake, bulk_of("head"))
        [result] = store.write([build("a", ["late"], token=2)])
        assert result.fenced
        assert texts_of(store, "a") == ["new"]
        store.write([build("a", ["new"], token=10)])
        assert [row["text"] for row in server.rows(store, "chunk")] == ["new"]

    def test_late_rows_of_a_refused_writer_are_named(self, store, server):
        """Rows that arrive after a newer claim has cleaned up are seen by nobody, named, and gone after a rewrite."""
        store.write([build("a", ["one"])])
        overtake = before(lambda: server.store().write([build("a", ["new"], token=9)]))
        server.proxy.inject(overtake, bulk_of("chunk"))
        assert store.write([build("a", ["late"], token=2)])[0].fenced
        assert texts_of(store, "a") == ["new"]
        assert store.held_contents(["a"])["a"].faults == {RowFault.UNSEEN: 2}
        store.write([msgspec.structs.replace(build("a", ["new"], token=10), rewrite=True)])
        assert store.held_contents(["a"])["a"].faults == {}

    def test_earlier_writer_in_between(self, store, server):
        """A writer that meets an earlier claim's head begins again and wins, and leaves no row of its first try."""
        store.write([build("a", ["one"])])
        server.proxy.inject(before(lambda: server.store().write([build("a", ["early"], token=2)])), bulk_of("head"))
        [result] = store.write([build("a", ["one", "mine"], token=3)])
        assert (result.fenced, result.n_written, result.n_removed) == (False, 2, 1)
        assert sorted(row["text"] for row in server.rows(store, "chunk")) == ["mine", "one"]

    def test_removed_while_a_late_writer_writes(self, store, server):
        """A removal between a writer's rows and its head refuses it."""
        store.write([build("a", ["one"])])
        server.proxy.inject(before(lambda: server.store().remove([Removal("a", 5)])), bulk_of("head"))
        assert store.write([build("a", ["late"], token=4)])[0].fenced
        assert store.held_documents() == []

    def test_overtaken_while_vectors_are_read(self, store, server):
        """An earlier claim's writer that replaces the rows whose vectors are wanted costs another look, no failure."""
        store.write([build("a", ["one"])])
        early = before(lambda: server.store().write([build("a", ["one", "early"], token=2)]))
        # The first snapshot is for what is held, the second for vectors.
        for fault in (lambda _request, forward: forward(), early):
            server.proxy.inject(fault, lambda request: request.method == "POST" and "point_in_time" in request.path)
        given = build("a", ["one", "mine"], token=3)
        only_new = {given.chunks[1].chunk_id: given.vectors[given.chunks[1].chunk_id]}
        [result] = store.write([msgspec.structs.replace(given, vectors=only_new)])
        assert (result.n_written, result.n_kept, result.n_removed) == (1, 1, 1)
        assert texts_of(store, "a") == ["mine", "one"]

    def test_overtaken_by_another_embedder(self, store, server):
        """A head written just after another embedder took the store over is seen to lack vectors, and made good."""
        store.write([build("a", [])])
        other = OpenSearchStore("test", EmbedderStamp("other", "2", 64), store._config)
        server.proxy.inject(before(lambda: other.write([build("b", ["two"])])), bulk_of("head"))
        store.write([build("a", ["one"], token=2)])
        assert [(h.document_id, h.n_chunks) for h in other.held_documents()] == [("a", 0), ("b", 1)]
        assert other.held_chunks(["a"]) == {"a": set()}
        assert [hit.text for hit in search(other, "one")] == ["two"]
        assert other.write([build("a", ["one"], token=2)])[0].n_written == 1
        assert {hit.text for hit in search(other, "one")} == {"one", "two"}

    def test_rows_that_searches_do_not_see_yet(self, store, server):
        """Rows missing right after their head was written are looked for again before they are written again."""
        store.write([build("a", ["one"])])
        first = server.rows(store)
        unseen = lambda _request, _forward: json_answer({"hits": {"hits": []}})  # noqa: E731
        server.proxy.inject(unseen, lambda request: b'"kind":["chunk","entry"]' in request.body.replace(b" ", b""))
        [result] = store.write([build("a", ["one"])])
        assert (result.n_written, result.n_kept) == (0, 1)
        assert server.rows(store) == first
        assert server.proxy.pending() == 0

    def test_strangers_do_not_take_the_place_of_others(self, store, server, prefix):
        """Rows no reader sees are nearest, and the k nearest that stand are found all the same."""
        store.write([build("a", ["one"]), build("b", ["other"])])
        server.proxy.inject(cut_before(), bulk_of("head"))
        with pytest.raises(StoreUnavailableError):
            store.write([build("c", ["query"] * 5), build("a", ["query"] * 3, token=2)])
        assert {hit.text for hit in search(store, "query", 2)} == {"one", "other"}
        assert store.search(np.zeros(64, np.float32), 1, org_id="default")[0].text == "one"

    def test_readers_never_meet_a_part_of_a_document(self, server, store):
        """While writers follow each other, a reader finds every document whole, in one version, and never empty."""
        tokens = list(range(2, 14))
        store.write([build(f"d{i}", texts_at(1, f"d{i}")) for i in range(5)])
        versions = [{f"d{i}": texts_at(token, f"d{i}") for i in range(5)} for token in range(14)]
        done = threading.Event()
        seen = set()

        def read():
            mine = server.store()
            while not done.is_set():
                for i in range(5):
                    found = texts_of(mine, f"d{i}")
                    [version] = [n for n, texts in enumerate(versions) if sorted(texts[f"d{i}"]) == found]
                    seen.add(version)
                assert {held.n_chunks for held in mine.held_documents()} <= {4, 5, 6, 7}

        def write(token):
            return server.store().write([build(d, texts, token=token) for d, texts in versions[token].items()])

        random.Random(3).shuffle(tokens)
        with ThreadPoolExecutor(4) as threads:
            reading = threads.submit(read)
            try:
                results = dict(zip(tokens, list(threads.map(write, tokens)), strict=True))
            finally:
                done.set()
            reading.result()
        assert not any(result.fenced for result in results[13])
        assert {d: texts_of(store, d) for d in versions[13]} == {d: sorted(t) for d, t in versions[13].items()}
        assert {row["fencing_token"] for row in server.rows(store, "head")} == {13}
        assert len(seen) > 1

    def test_killed_writers_leave_whole_documents(self, server, store, prefix):
        """Writers killed at a random moment: each document is whole, and is free for the next."""
        moments = random.Random(7)
        started = [SPAWN.Event() for _ in range(3)]
        # Daemons, so that a failing test leaves no writer behind.
        writers = [
            SPAWN.Process(target=write_for_ever, args=(server.url, prefix, f"w{i}-", event), daemon=True)
            for i, event in enumerate(started)
        ]
        for writer in writers:
            writer.start()
        for writer, event in zip(writers, started, strict=True):
            assert event.wait(60)
            time.sleep(moments.uniform(0, 0.15))
            writer.kill()
            writer.join()
        ids = [f"w{i}-{j}" for i in range(3) for j in range(N_DOCUMENTS)]
        for document_id in ids:
            texts = texts_of(store, document_id)
            version = int(next(text for text in texts if text != "stays").split()[2])
            assert texts == sorted(texts_at(version, document_id))
        results = store.write([build(document_id, texts_at(0, document_id), token=10**9) for document_id in ids])
        assert not any(result.fenced for result in results)
        assert len(server.rows(store, "chunk")) == 4 * len(ids)

    def test_dropped_between_rows_and_head(self, store, server, prefix):
        """A store dropped under a write is told, and no row makes an index of its own."""
        server.proxy.inject(before(store.drop), bulk_of("chunk"))
        with pytest.raises(StoreChangedError):
            store.write([build("a", ["one"])])
        assert server.ask("GET", f"/_cat/indices/{prefix}*?format=json") == []
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]

    def test_dropped_and_made_again_under_a_write(self, store, server):
        """A head is not written over rows that went with the index before."""
        store.write([build("z", ["zero"])])

        def drop_and_make():
            store.drop()
            server.store().write([build("b", ["two"])])

        server.proxy.inject(lambda request, forward: (forward(), drop_and_make())[0], bulk_of("chunk"))
        with pytest.raises(StoreChangedError):
            store.write([build("a", ["one"])])
        assert [held.document_id for held in store.held_documents()] == ["b"]


class TestErrors:
    @pytest.mark.parametrize("status", [429, 503])
    def test_no_room_is_tried_again(self, store, server, status):
        """What the server refused for want of room or of a shard is sent again, whole requests and single rows."""
        server.proxy.inject(answer(status), path_has("_mapping"))
        server.proxy.inject(refused_items(status, "es_rejected_execution_exception"), bulk_of("chunk"))
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]

    def test_only_the_refused_rows_are_sent_again(self, store, server):
        """A row that was taken is not sent a second time."""
        sizes = []

        def refuse_the_second(request, forward):
            sizes.append(len(request.body.splitlines()) // 2)
            return refused_items(429, "es_rejected_execution_exception", b'"two"')(request, forward)

        def count(request, forward):
            sizes.append(len(request.body.splitlines()) // 2)
            return forward()

        server.proxy.inject(refuse_the_second, bulk_of("chunk"))
        server.proxy.inject(count, bulk_of("chunk"))
        store.write([msgspec.structs.replace(build("a", ["one", "two", "three"]), entries=[])])
        assert sizes == [3, 1]

    def test_trying_ends(self, store, server):
        """A server that stays full is unavailable; nothing else is tried three times."""
        for _ in range(3):
            server.proxy.inject(answer(429), path_has("_mapping"))
        with pytest.raises(StoreUnavailableError, match="429"):
            search(store, "one")

    @pytest.mark.parametrize(("status", "meaning"), [(500, StoreUnavailableError), (502, StoreUnavailableError)])
    def test_other_faults_are_not_tried_again(self, store, server, status, meaning):
        """A request that may have been carried out is not sent again."""
        server.proxy.inject(answer(status), path_has("_mapping"))
        with pytest.raises(meaning, match=str(status)):
            search(store, "one")

    @pytest.mark.parametrize("status", [401, 403])
    def test_refused_user(self, store, server, status):
        """Wrong credentials need a person, and the message says where they come from."""
        server.proxy.inject(answer(status), path_has("_mapping"))
        with pytest.raises(StoreConfigError, match=rf"refuses \({status}\).*username_env"):
            search(store, "one")

    @pytest.mark.parametrize("status", [302, 400, 405])
    def test_something_else_answers(self, store, server, status):
        """What is no OpenSearch, or an old one, is a matter for a person and no document's fault."""
        server.proxy.inject(answer(status, b"<html>", "text/html"), path_has("_mapping"))
        with pytest.raises(StoreConfigError, match=rf"does not take a request \({status}\).*OpenSearch 2\.4"):
            store.write([build("a", ["one"])])

    def test_bad_document_fails_alone(self, store, server):
        """One row the server cannot hold fails its document; the others of the call stand."""
        with pytest.raises(ValueError, match=r"Document 'bad'.*fencing_token"):
            store.write([build("a", ["one"]), build("bad", ["bad"], token=2**63), build("b", ["two"])])
        assert [held.document_id for held in store.held_documents()] == ["a", "b"]
        assert [r.n_kept for r in store.write([build("a", ["one"]), build("b", ["two"])])] == [1, 1]

    def test_removal_that_cannot_be_held(self, store):
        """A removal whose head the server refuses is no success."""
        with pytest.raises(ValueError, match="Document 'bad'"):
            store.remove([Removal("bad", 2**63)])

    def test_bad_row_of_a_document_that_stands(self, store, server):
        """The document stays as it was when one row of its new version is refused."""
        store.write([build("a", ["one"])])
        server.proxy.inject(refused_items(400, "mapper_parsing_exception", b'"bad"'), bulk_of("chunk"))
        with pytest.raises(ValueError, match=r"Document 'a'.*mapper_parsing"):
            store.write([build("a", ["one", "bad"], token=2)])
        assert texts_of(store, "a") == ["one"]

    def test_row_too_large_for_a_request(self, store, server):
        """A request the server finds too large is the document's fault."""
        server.proxy.inject(answer(413), bulk_of("chunk"))
        with pytest.raises(ValueError, match="larger than"):
            store.write([build("a", ["one"])])

    def test_another_mapping(self, store, server):
        """A mapping that lacks our fields is the store's damage, not the document's."""
        server.proxy.inject(refused_items(400, "strict_dynamic_mapping_exception"), bulk_of("chunk"))
        with pytest.raises(StoreCorruptError, match="another mapping"):
            store.write([build("a", ["one"])])

    def test_index_of_another_program(self, store, server, prefix):
        """An index that is not ours is not taken for a store, nor dropped."""
        server.ask("PUT", f"/{prefix}-test", {"mappings": {"properties": {"text": {"type": "text"}}}})
        for action in (lambda: search(store, "one"), lambda: store.write([build("a", ["one"])]), store.drop):
            with pytest.raises(StoreCorruptError, match=f"{prefix}-test.*not made by this program"):
                action()

    def test_newer_format(self, store, server, prefix):
        """An index of a newer program is left alone, with a clear message."""
        store.write([build("a", ["one"])])
        [mapping] = server.ask("GET", f"/{prefix}-test/_mapping").values()
        meta = mapping["mappings"]["_meta"] | {"format_version": 99, "embedder": "in another form"}
        server.ask("PUT", f"/{prefix}-test/_mapping", {"_meta": meta})
        for action in (
            lambda: search(store, "one"),
            lambda: store.write([build("b", ["two"])]),
            lambda: store.remove([Removal("a", 2)]),
            store.held_documents,
        ):
            with pytest.raises(StoreTooNewError, match=r"'test'.*99"):
                action()

    def test_nobody_answers(self, store, server):
        """A connection that is refused may heal."""
        gone = server.store(url="http://127.0.0.1:9")
        with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:9 cannot be reached"):
            search(gone, "one")

    def test_answer_takes_too_long(self, store, server):
        """Waiting has an end, and the next call works again."""
        store.write([build("a", ["one"])])
        impatient = server.store(timeout=0.2)
        server.proxy.inject(lambda _request, _forward: time.sleep(0.5), path_has("_mapping"))
        with pytest.raises(StoreUnavailableError):
            search(impatient, "one")
        assert texts_of(impatient, "a") == ["one"]

    def test_search_the_server_does_not_know(self, store, server):
        """A server without k-NN queries is told from a document that is at fault."""
        store.write([build("a", ["one"])])
        with pytest.raises(StoreConfigError, match="k-NN plugin"):
            search(server.store(search="exact"), "one")

    def test_too_many_for_the_client(self, store, monkeypatch):
        """Searching by itself is for small stores, and says so."""
        from resources.store.opensearch import nearest as opensearch_nearest

        store.write([build("a", ["one", "two", "three"])])
        monkeypatch.setattr(opensearch_nearest, "_MOST_FOR_CLIENT", 2)
        with pytest.raises(StoreConfigError, match="'client' is for at most 2"):
            search(store, "one")

    def test_too_many_results(self, store):
        """What the server would not answer at once is refused before it is asked."""
        with pytest.raises(ValueError, match="10000"):
            search(store, "one", 10_001)

    def test_forked_child_has_its_own_connections(self, store):
        """A child leaves its parent's connections alone, and both go on."""
        store.write([build("a", ["one"])])
        child = os.fork()
        if child == 0:
            os._exit(0 if texts_of(store, "a") == ["one"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert texts_of(store, "a") == ["one"]


class TestLegacyIndex:
    @pytest.fixture
    def legacy(self, server, prefix):
        """An index another program filled: two documents of `default`, one of somebody else."""
        name = f"{prefix}.old"
        keyword = {"type": "keyword"}
        fields = dict.fromkeys(("document_id", "org_id", "source", "chunk_id"), keyword)
        vector = {"type": "knn_vector", "dimension": 64}
        server.ask("PUT", f"/{name}", {"mappings": {"properties": fields | {"embedding": vector}}})
        for document_id, org_id in (("a", "default"), ("old", "default"), ("x", "other")):
            given = build(document_id, [f"legacy {document_id}"])
            [chunk] = given.chunks
            row = {"document_id": document_id, "org_id": org_id, "source": "docs", "chunk_id": chunk.chunk_id}
            row |= {
                "text": chunk.text,
                "title": "T",
                "source_uri": "u",
                "embedding": given.vectors[chunk.chunk_id].tolist(),
            }
            server.ask("POST", f"/{name}/_doc?refresh=true", row)
        server.ask("POST", f"/{name}/_doc?refresh=true", {"org_id": "default", "note": "no chunk at all"})
        return name

    def test_is_searched_too(self, server, legacy):
        """It is read before anything is written, and beside it, inside the tenant and the filters."""
        store = server.store(legacy_index=legacy, legacy_vector_field="embedding")
        [hit] = search(store, "legacy old", 1)
        assert (hit.text, hit.title, hit.source_uri, hit.score) == ("legacy old", "T", "u", pytest.approx(1))
        store.write([build("b", ["ours"])])
        assert {hit.text for hit in search(store, "anything")} == {"legacy a", "legacy old", "ours"}
        assert [hit.text for hit in search(store, "anything", document_id="old")] == ["legacy old"]

    def test_what_we_hold_has_the_say(self, server, legacy):
        """A document built or removed by us is not read from there any more, and nothing there is written."""
        store = server.store(legacy_index=legacy, legacy_vector_field="embedding")
        store.write([build("a", ["ours"])])
        store.remove([Removal("old", 1)])
        assert [hit.text for hit in search(store, "legacy a", 1)] == ["ours"]
        assert [hit.text for hit in search(store, "anything")] == ["ours"]
        store.drop()
        assert server.ask("GET", f"/{legacy}/_count")["count"] == 4
        assert {hit.text for hit in search(store, "anything")} == {"legacy a", "legacy old"}

    def test_is_not_there(self, server, prefix):
        """A name that is wrong is said."""
        with pytest.raises(StoreConfigError, match="legacy_index"):
            search(server.store(legacy_index=f"{prefix}.none"), "one")

    def test_other_vectors(self, server, legacy):
        """Vectors that cannot be the embedder's are refused."""
        with pytest.raises(StoreMismatchError, match="64 numbers in its field 'vector'"):
            search(server.store(legacy_index=legacy), "one")


class TestAddress:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "url"),
            ({"url": "search.example.org"}, "no address"),
            ({"url": "https://h:port"}, "no address"),
            ({"url": "https://user:geheim@h:9200"}, "holds a user or password"),
            ({"url": "https://h", "username_env": "U"}, "go together"),
            ({"url": "http://h", "username_env": "U", "password_env": "P"}, "https only"),
            ({"url": "https://h", "search": "magic"}, "search"),
            ({"url": "https://h", "indx": "x"}, "unknown option 'indx'"),
        ],
    )
    def test_wrong_options(self, options, message):
        """What is wrong is said without repeating a secret."""
        with pytest.raises(StoreConfigError, match=f"'legal'.*{message}") as caught:
            open_store("opensearch", "legal", STAMP, options)
        assert "geheim" not in str(caught.value)

    @pytest.mark.parametrize("prefix", ["Upper", "-x", "a b", "x" * 250])
    def test_wrong_prefix(self, monkeypatch, prefix):
        """A prefix no index's name can have is told before anybody is asked."""
        monkeypatch.setenv("INGEST_INDEX_PREFIX", prefix)
        with pytest.raises(StoreConfigError, match="name"):
            open_store("opensearch", "legal", STAMP, {"url": "https://h"})

    def test_default_prefix(self, monkeypatch):
        """Without a prefix the index is `ingest-<slug>`, dots and dashes included."""
        monkeypatch.delenv("INGEST_INDEX_PREFIX", raising=False)
        assert open_store("opensearch", "legal-v1.2", STAMP, {"url": "https://h"})._index.name == "ingest-legal-v1.2"

    def test_credentials_come_from_the_environment(self, server, monkeypatch, caplog):
        """They are sent, read anew at each call, asked for by name when missing, and stand in no message or log."""
        caplog.set_level("DEBUG")
        store = server.store(username_env="SEARCH_USER", password_env="SEARCH_PASSWORD")
        with pytest.raises(StoreConfigError, match="SEARCH_USER is not set"):
            search(store, "one")
        sent = []

        def refuse(request, forward):
            sent.append(request.headers["Authorization"])
            return Answer(401, b'{"error": "no"}', [("Content-Type", "application/json")])

        for password in ("geheim1", "geheim2"):
            monkeypatch.setenv("SEARCH_USER", "ingest")
            monkeypatch.setenv("SEARCH_PASSWORD", password)
            server.proxy.inject(refuse)
            with pytest.raises(StoreConfigError) as caught:
                search(store, "one")
            assert "geheim" not in f"{caught.value} {caught.value.__cause__}"
        assert len(set(sent)) == 2
        assert all(header.startswith("Basic ") for header in sent)
        assert not any(word in caplog.text for word in ("geheim", *(header.split()[1] for header in sent)))

    def test_certificates_are_verified(self):
        """Verification is on unless it is turned off by name."""
        for options, verified in (({}, True), ({"verify_certs": False}, False)):
            store = open_store("opensearch", "legal", STAMP, {"url": "https://h", **options})
            connection = store._index.cluster._driver().transport.get_connection()
            required = connection.pool.cert_reqs if connection.pool else connection.pool_cert_reqs
            assert (required == "CERT_REQUIRED") == verified

    def test_too_wide_an_embedder(self):
        """What the plugin cannot hold is said before anything is written."""
        with pytest.raises(StoreConfigError, match="16000"):
            open_store("opensearch", "legal", EmbedderStamp("wide", "1", 16_001), {"url": "https://h"})
