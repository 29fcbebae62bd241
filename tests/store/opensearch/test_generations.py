"""A document changes as a whole: rows of a new generation, then the head that names it; who may die or race between."""

import multiprocessing
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest

from resources.embedder.embedder import EmbedderStamp
from resources.store.opensearch.opensearch_store import OpenSearchStore
from resources.store.store import Removal, RowFault, StoreChangedError, StoreUnavailableError
from tests.servers.exchange import Answer
from tests.servers.faults import cut_after, cut_before
from tests.store.contract import build, search, texts_of
from tests.store.opensearch_server import before, bulk_of, json_answer, path_has
from tests.store.opensearch_writer_process import write_for_ever
from tests.store.writer_process import N_DOCUMENTS, texts_at

SPAWN = multiprocessing.get_context("spawn")


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
