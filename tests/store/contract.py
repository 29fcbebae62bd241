"""What every kind of store keeps: subclass `StoreContract`, give it a store, and the rules are checked."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest

from resources.artifact_store.artifact import Artifact, Entry, Piece, Place, chunks_of, chunkset_hash, entry_id
from resources.artifact_store.corrections import Signature, corrected
from resources.embedder.hash_embedder import HashEmbedder
from resources.store.content import expected_content
from resources.store.store import (
    BuildResult,
    DocumentBuild,
    EmbedderStamp,
    Hit,
    Removal,
    RowFault,
    Store,
    StoreChangedError,
    StoreMismatchError,
)
from tests.store.raw_rows import RawRows, Table

EMBEDDER = HashEmbedder()
HOSTILE_TEXTS = (
    "'; DROP TABLE chunks; --",
    'quotes " and \\ and `',
    "emoji 👩‍👩‍👧 and flags 🇨🇭",
    "ערב טוב, مساء الخير \u202e reversed",
    "new\nlines\r\nand\ttabs",
    "\ufeff\u200b\uffff\x01",
    "$org_id ? %s {dimension}",
)


def build(
    document_id: str,
    texts: Sequence[str],
    *,
    token: int = 1,
    org_id: str = "default",
    source: str = "docs",
    title: str = "Title",
    headings: tuple[str, ...] = (),
) -> DocumentBuild:
    """A document with these chunks, a statement for each, and the vectors of all of them."""
    chunks = chunks_of(document_id, [Piece(text, Place(i * 10, i * 10 + 9, headings)) for i, text in enumerate(texts)])
    vectors = EMBEDDER.embed([chunk.text for chunk in chunks])
    return DocumentBuild(
        document_id=document_id,
        org_id=org_id,
        source=source,
        source_uri=f"{source}:{document_id}",
        title=title,
        fencing_token=token,
        chunkset_hash=chunkset_hash(chunks),
        chunks=chunks,
        entries=[
            Entry(entry_id(document_id, c.chunk_id, "statement", c.text), "statement", c.text, c.chunk_id)
            for c in chunks
        ],
        vectors={chunk.chunk_id: vector for chunk, vector in zip(chunks, vectors, strict=True)},
    )


def search(store: Store, text: str, k: int = 10, org_id: str = "default", **filters: str) -> list[Hit]:
    """Search for a text."""
    return store.search(EMBEDDER.embed([text])[0], k, org_id=org_id, **filters)


def texts_of(store: Store, document_id: str, org_id: str = "default") -> list[str]:
    """The texts a reader finds of a document, sorted."""
    return sorted(hit.text for hit in search(store, "anything", 1000, org_id, document_id=document_id))


class StoreContract(ABC):
    @pytest.fixture
    @abstractmethod
    def store(self, tmp_path) -> Store:
        """A store of HashEmbedder's vectors, in which nothing was written yet."""

    @abstractmethod
    def rows(self, store: Store) -> RawRows:
        """The store's rows, read and changed around it."""

    @abstractmethod
    def reopened(self, store: Store, stamp: EmbedderStamp) -> Store:
        """The same store, as another process with another embedder's stamp sees it."""

    def test_nothing_written_reads_as_empty(self, store):
        """Reading a store that does not exist yet finds nothing and fails nowhere."""
        assert store.held_chunks(["a"]) == {"a": set()}
        assert store.held_documents() == []
        assert store.held_ids() == []
        assert store.held_contents(["a"]) == {}
        assert search(store, "one") == []
        store.drop()

    def test_written_document_is_found(self, store):
        """What was written is found by its own text, with everything a reader needs."""
        given = build("a", ["one", "two"], headings=("Part", "Chapter"), title="A title")
        [result] = store.write([given])
        assert (result.n_written, result.n_kept, result.n_removed, result.fenced) == (2, 0, 0, False)
        hit = search(store, "two", 1)[0]
        assert hit.score == pytest.approx(1)
        assert (hit.document_id, hit.chunk_id, hit.text) == ("a", given.chunks[1].chunk_id, "two")
        assert (hit.source_uri, hit.title, hit.place) == ("docs:a", "A title", given.chunks[1].place)

    def test_every_place_survives(self, store):
        """Pages, sheets and rows come back as they were given."""
        place = Place(1, 2, ("H",), page=3, last_page=4, sheet="Sheet 1", row=5, last_row=6)
        given = build("a", ["one"])
        chunks = [msgspec.structs.replace(given.chunks[0], place=place)]
        store.write([msgspec.structs.replace(given, chunks=chunks)])
        assert search(store, "one", 1)[0].place == place

    def test_unchanged_document_writes_nothing(self, store):
        """Writing the same again keeps every chunk."""
        store.write([build("a", ["one", "two"])])
        [result] = store.write([build("a", ["one", "two"])])
        assert (result.n_written, result.n_kept, result.n_removed) == (0, 2, 0)

    def test_only_the_changed_chunk_is_written(self, store):
        """One chunk of a hundred changed: one row is written, one removed, and only its vector is needed."""
        texts = [f"text {i}" for i in range(100)]
        store.write([build("a", texts)])
        texts[50] = "another"
        changed = build("a", texts)
        held = store.held_chunks(["a"])["a"]
        vectors = {key: vector for key, vector in changed.vectors.items() if key not in held}
        assert len(vectors) == 1
        [result] = store.write([msgspec.structs.replace(changed, vectors=vectors)])
        assert (result.n_written, result.n_kept, result.n_removed) == (1, 99, 1)
        assert texts_of(store, "a") == sorted(texts)

    def test_a_corrected_chunk_is_one_row(self, store):
        """One chunk of a hundred is corrected to what another says: one vector, one row, and its entries go along."""
        given = build("a", [f"text {i}" for i in range(100)])
        store.write([given])
        artifact = Artifact("a", given.title, "", "", given.chunkset_hash, tuple(given.chunks), tuple(given.entries))
        signature = Signature("ann", datetime(2026, 1, 1, tzinfo=UTC))
        artifact = corrected(artifact, {given.chunks[50].chunk_id: "text 7"}, signature)
        new_id = artifact.chunks[50].chunk_id
        changed = msgspec.structs.replace(
            given,
            chunkset_hash=artifact.chunkset_hash,
            chunks=artifact.chunks,
            entries=artifact.entries,
            vectors={new_id: EMBEDDER.embed(["text 7"])[0]},
        )
        [result] = store.write([changed])
        assert (result.n_written, result.n_kept, result.n_removed) == (1, 99, 1)
        held = store.held_contents(["a"])["a"]
        assert (held.faults, held.content_hash) == ({}, expected_content(changed))

    def test_moved_chunk_gets_its_new_place(self, store):
        """A chunk that is kept stands at its new place afterwards."""
        store.write([build("a", ["one", "two"])])
        moved = build("a", ["zero", "one", "two"], headings=("New",))
        [result] = store.write([moved])
        assert (result.n_written, result.n_kept) == (1, 2)
        assert search(store, "two", 1)[0].place == moved.chunks[2].place

    def test_renamed_document_shows_its_new_title_and_source(self, store):
        """A change outside the chunks reaches the reader and the filters as well."""
        store.write([build("a", ["one"])])
        store.write([build("a", ["one"], title="New", source="moved")])
        assert [hit.title for hit in search(store, "one", source="moved")] == ["New"]
        assert search(store, "one", source="docs") == []

    def test_document_may_shrink_to_nothing(self, store):
        """A document without chunks holds none, and is held."""
        store.write([build("a", ["one"])])
        [result] = store.write([build("a", [])])
        assert result.n_removed == 1
        assert texts_of(store, "a") == []
        assert [held.n_chunks for held in store.held_documents()] == [0]

    def test_same_text_twice_in_a_document(self, store):
        """Equal texts are different chunks."""
        store.write([build("a", ["one", "one"])])
        assert texts_of(store, "a") == ["one", "one"]

    def test_later_claim_fences_the_earlier(self, store):
        """A writer with a smaller token than the store's is refused, and the others of its call go on."""
        store.write([build("a", ["new"], token=5)])
        results = store.write([build("a", ["old"], token=4), build("b", ["other"], token=1)])
        assert [(result.fenced, result.held_token) for result in results] == [(True, 5), (False, 0)]
        assert texts_of(store, "a") == ["new"]
        assert texts_of(store, "b") == ["other"]

    def test_unchanged_write_still_moves_the_fence(self, store):
        """A later claim that finds nothing to change fences the earlier one all the same."""
        store.write([build("a", ["one"], token=1)])
        store.write([build("a", ["one"], token=7)])
        assert store.write([build("a", ["late"], token=6)])[0].fenced

    def test_removed_document_refuses_a_late_writer(self, store):
        """Removal is remembered: a writer whose claim is older cannot bring the document back."""
        store.write([build("a", ["one"], token=1)])
        [result] = store.remove([Removal("a", 3)])
        assert (result.n_removed, result.fenced, result.held_token) == (1, False, 0)
        assert store.write([build("a", ["late"], token=2)]) == [BuildResult("a", fenced=True, held_token=3)]
        assert search(store, "late") == []
        assert not store.write([build("a", ["again"], token=4)])[0].fenced
        assert texts_of(store, "a") == ["again"]

    def test_removal_is_fenced_too(self, store):
        """An old claim cannot remove what a newer one wrote."""
        store.write([build("a", ["one"], token=5)])
        assert store.remove([Removal("a", 4)]) == [BuildResult("a", fenced=True, held_token=5)]
        assert texts_of(store, "a") == ["one"]

    def test_removing_what_is_not_there_succeeds(self, store):
        """Nothing to remove is a success, and removing twice is as well."""
        assert [result.n_removed for result in store.remove([Removal("a", 1)])] == [0]
        assert not store.remove([Removal("a", 1)])[0].fenced

    def test_remaining_is_what_is_left(self, store):
        """What stands in the store is left of a document, and after its removal nothing, whatever the embedder."""
        assert store.remaining(["a"]) == set()
        store.write([build("a", ["one"]), build("b", ["two"]), build("empty", [])])
        other = self.reopened(store, EmbedderStamp("other", "9", 64))
        for asked in (store, other):
            assert asked.remaining(["a", "b", "empty", "never"]) == {"a", "b", "empty"}
        assert store.remaining([]) == set()
        store.remove([Removal("a", 2)])
        for asked in (store, other):
            assert asked.remaining(["a", "b"]) == {"b"}

    def test_search_stays_inside_its_tenant(self, store):
        """A tenant never finds another's chunks, whatever they are about."""
        store.write([build("a", ["one"], org_id="x"), build("b", ["one"], org_id="y")])
        assert [hit.document_id for hit in search(store, "one", org_id="x")] == ["a"]
        assert search(store, "one", org_id="default") == []
        assert search(store, "one", org_id="x' OR '1'='1") == []

    def test_filters_narrow(self, store):
        """Search can be kept to a document or a source."""
        store.write([build("a", ["one"]), build("b", ["one"], source="mail")])
        assert [hit.document_id for hit in search(store, "one", document_id="b")] == ["b"]
        assert [hit.document_id for hit in search(store, "one", source="docs")] == ["a"]
        assert search(store, "one", document_id="a", source="mail") == []

    def test_ties_are_ordered_by_document_and_chunk(self, store):
        """Equal scores come in the same order whatever the order of writing."""
        for document_id in ("c", "a", "b"):
            store.write([build(document_id, ["same", "same"])])
        found = [(hit.document_id, hit.chunk_id) for hit in search(store, "same")]
        assert found == sorted(found)
        assert len(found) == 6

    def test_search_agrees_with_numpy(self, store):
        """The order and the scores are those of the exact cosine."""
        texts = [f"text {i}" for i in range(300)]
        store.write([build("a", texts)])
        scores = EMBEDDER.embed(texts) @ EMBEDDER.embed(["query"])[0]
        hits = search(store, "query", 20)
        assert [hit.text for hit in hits] == [texts[i] for i in np.argsort(-scores)[:20]]
        assert [hit.score for hit in hits] == pytest.approx(sorted(scores, reverse=True)[:20], abs=1e-5)

    def test_zero_vectors_are_near_to_nothing(self, store):
        """A zero vector, stored or asked for, scores 0 and never NaN."""
        given = build("a", ["one"])
        store.write([msgspec.structs.replace(given, vectors={given.chunks[0].chunk_id: np.zeros(64, np.float32)})])
        assert [hit.score for hit in search(store, "one")] == [0]
        assert [hit.score for hit in store.search(np.zeros(64, np.float32), 5, org_id="default")] == [0]

    def test_k_of_nothing_finds_nothing(self, store):
        """Asking for no result gives none."""
        store.write([build("a", ["one"])])
        assert search(store, "one", 0) == []

    def test_wrong_vectors_are_refused(self, store):
        """A vector of another length, or one that is not a number, changes nothing."""
        given = build("a", ["one"])
        for vector in (np.ones(63, np.float32), np.full(64, np.nan, np.float32)):
            with pytest.raises(ValueError):
                store.write([msgspec.structs.replace(given, vectors={given.chunks[0].chunk_id: vector})])
        assert store.held_documents() == []

    def test_missing_vector_is_told(self, store):
        """A chunk that is neither held nor given a vector stops the whole call before anything changes."""
        with pytest.raises(StoreChangedError, match="'b'"):
            store.write([build("a", ["one"]), msgspec.structs.replace(build("b", ["two"]), vectors={})])
        assert store.held_documents() == []

    def test_one_document_twice_in_a_call_is_refused(self, store):
        """Which of two builds of one document should stand cannot be guessed."""
        with pytest.raises(ValueError, match="'a'"):
            store.write([build("a", ["one"]), build("a", ["two"])])
        with pytest.raises(ValueError, match="'a'"):
            store.remove([Removal("a", 1), Removal("a", 2)])

    def test_another_embedder_is_refused(self, store):
        """Vectors of two embedders never meet; the message names both and the way out."""
        store.write([build("a", ["one"])])
        other = self.reopened(store, EmbedderStamp("other", "9", 64))
        for action in (
            lambda: other.write([build("b", ["two"])]),
            lambda: other.held_chunks(["a"]),
            lambda: search(other, "one"),
        ):
            with pytest.raises(StoreMismatchError, match=r"hash 1.*other 9.*new store"):
                action()
        assert texts_of(store, "a") == ["one"]

    def test_another_embedder_may_remove_and_then_take_over(self, store):
        """Removal works whatever the embedder, and a store without vectors takes the new one."""
        store.write([build("a", ["one"])])
        other = self.reopened(store, EmbedderStamp("other", "9", 64))
        other.remove([Removal("a", 2)])
        other.write([build("b", ["two"])])
        assert texts_of(other, "b") == ["two"]
        with pytest.raises(StoreMismatchError):
            search(store, "two")

    def test_hostile_texts_and_ids_are_just_text(self, store):
        """Quotes, emoji, right-to-left text and SQL come back as they went in, in every field."""
        builds = [build(text, [text, *HOSTILE_TEXTS], title=text, source=text) for text in HOSTILE_TEXTS]
        store.write(builds)
        for text in HOSTILE_TEXTS:
            hits = search(store, text, 100, document_id=text, source=text)
            assert sorted(hit.text for hit in hits) == sorted((text, *HOSTILE_TEXTS))
            assert {hit.title for hit in hits} == {text}
        assert store.held_chunks(HOSTILE_TEXTS)[HOSTILE_TEXTS[0]] == {chunk.chunk_id for chunk in builds[0].chunks}

    def test_very_large_text(self, store):
        """A text of 20 MB is one chunk like any other."""
        text = "large 🐘 " * 2_500_000
        store.write([build("a", [text])])
        assert search(store, text, 1)[0].text == text

    def test_held_documents_are_paged(self, store):
        """Pages follow each other by document id and count what is really there."""
        store.write([build(f"d{i}", ["one", "two"][: i % 3]) for i in range(7)])
        first = store.held_documents(limit=4)
        rest = store.held_documents(after=first[-1].document_id, limit=4)
        assert [held.document_id for held in first + rest] == [f"d{i}" for i in range(7)]
        assert [held.n_chunks for held in first + rest] == [0, 1, 2, 0, 1, 2, 0]
        assert [held.n_entries for held in first] == [0, 1, 2, 0]

    def test_what_is_held_is_what_was_given(self, store):
        """Whole documents are held without a fault, and say exactly what a build says that holds the same."""
        builds = [build("a", ["one", "two"], token=3), build("b", ["one", "one"], title="\ud800 \0"), build("c", [])]
        store.write(builds)
        held = store.held_contents(["a", "b", "c", "unknown"])
        assert {key: found.faults for key, found in held.items()} == {"a": {}, "b": {}, "c": {}}
        assert {key: found.content_hash for key, found in held.items()} == {
            given.document_id: expected_content(given) for given in builds
        }
        assert held["a"].fencing_token == 3

    def test_what_is_held_differs_in_anything_that_was_given(self, store):
        """A text, an entry, a place, an order, a title or a tenant: each shows in what is held."""
        given = build("a", ["one", "two"])
        first, second = given.chunks
        others = [
            build("a", ["one", "three"]),
            build("a", ["two", "one"]),
            build("a", ["one", "two"], title="Other"),
            build("a", ["one", "two"], org_id="other"),
            build("a", ["one", "two"], headings=("H",)),
            msgspec.structs.replace(given, entries=given.entries[1:]),
            msgspec.structs.replace(given, chunks=[msgspec.structs.replace(first, place=Place(0, 9, page=2)), second]),
        ]
        store.write([given])
        held = store.held_contents(["a"])["a"].content_hash
        assert held == expected_content(given)
        assert held not in {expected_content(other) for other in others}

    def test_every_changed_field_is_found_and_mended(self, store):
        """Whichever field of a row somebody changes, the document is found, and only writing it anew mends it."""
        given, rows = build("a", ["one", "two"], token=5), self.rows(store)
        store.write([given, build("b", ["other"])])
        for table in Table:
            for field in rows.fields(table):
                [row, *_] = rows.of("a", table)
                rows.change(row, field)
                found = store.held_contents(["a"]).get("a")
                assert found is None or found.faults or found.content_hash != expected_content(given), field
                others = [key for key in store.held_ids() if key not in {"a", "b"}]
                store.remove([Removal(key, 10**9) for key in others])
                token = max(given.fencing_token, found.fencing_token if found else 0) + 1
                given = msgspec.structs.replace(given, fencing_token=token, rewrite=True)
                assert not store.write([given])[0].fenced
                mended = store.held_contents(["a"])["a"]
                assert (mended.faults, mended.content_hash) == ({}, expected_content(given)), field
        assert store.held_ids() == ["a", "b"]
        assert store.held_contents(["b"])["b"].faults == {}

    def test_lost_rows_are_found(self, store):
        """A row that is gone, of whichever table, is found and mended."""
        given, rows = build("a", ["one", "two"]), self.rows(store)
        for token, table in enumerate(Table, 1):
            given = msgspec.structs.replace(given, fencing_token=token, rewrite=True)
            store.write([given])
            rows.remove(rows.of("a", table)[0])
            found = store.held_contents(["a"])["a"]
            assert found.faults or found.content_hash != expected_content(given)
            assert store.held_ids() == ["a"]
        store.write([msgspec.structs.replace(given, fencing_token=9)])
        assert store.held_contents(["a"])["a"].faults == {}

    def test_rows_without_a_document_can_be_removed(self, store):
        """Rows whose document's row is lost are named, and a removal takes them out, also the same one again."""
        rows = self.rows(store)
        store.write([build("a", ["one"], token=2)])
        store.remove([Removal("a", 3)])
        store.write([build("a", ["one"], token=4)])
        rows.remove(rows.of("a", Table.DOCUMENTS)[0])
        assert store.held_contents(["a"])["a"].faults.keys() & {RowFault.ORPHAN, RowFault.UNSEEN}
        store.remove([Removal("a", 4)])
        assert (store.held_ids(), store.held_contents(["a"])) == ([], {})

    def test_a_damaged_vector_is_not_vouched_for(self, store):
        """A chunk kept by an ordinary write stays damaged: no new checksum hides it."""
        rows = self.rows(store)
        store.write([build("a", ["one", "two"])])
        rows.change(rows.of("a", Table.CHUNKS)[0], rows.vector_field)
        store.write([build("a", ["one", "two", "three"], token=2)])
        assert store.held_contents(["a"])["a"].faults == {RowFault.DAMAGED_CHUNK: 1}

    def test_rewriting_needs_every_vector(self, store):
        """Who trusts nothing that is held gives all vectors; otherwise nothing is changed."""
        store.write([build("a", ["one"])])
        with pytest.raises(StoreChangedError):
            store.write([msgspec.structs.replace(build("a", ["one"]), vectors={}, rewrite=True)])
        assert texts_of(store, "a") == ["one"]

    def test_a_fenced_writer_may_not_rewrite(self, store):
        """Trusting nothing that is held does not mean the tokens."""
        store.write([build("a", ["new"], token=5)])
        assert store.write([msgspec.structs.replace(build("a", ["old"], token=4), rewrite=True)])[0].fenced
        assert texts_of(store, "a") == ["new"]

    def test_held_ids_are_paged(self, store):
        """Pages of ids follow each other, removed documents left out."""
        store.write([build(f"d{i}", ["one", "two"][: i % 3]) for i in range(7)])
        store.remove([Removal("d3", 2)])
        first = store.held_ids(limit=4)
        assert first + store.held_ids(first[-1], limit=4) == ["d0", "d1", "d2", "d4", "d5", "d6"]

    def test_rows_of_the_first_version_are_named_and_mended(self, store):
        """Rows from before checksums are readable and unchecked; the next write brings the store up to date."""
        store.write([build("a", ["one"]), build("b", ["two"])])
        self.rows(store).forget_checksums()
        unchecked = {RowFault.UNCHECKED: 2}
        assert store.held_contents(["a"])["a"].faults == unchecked
        store.write([msgspec.structs.replace(build("a", ["one"], token=2), rewrite=True)])
        assert {key: held.faults for key, held in store.held_contents(["a", "b"]).items()} == {"a": {}, "b": unchecked}
        assert texts_of(store, "b") == ["two"]

    def test_dropping_forgets_everything(self, store):
        """After a drop the store is as new, for any embedder, and dropping again succeeds."""
        store.write([build("a", ["one"], token=9)])
        store.drop()
        store.drop()
        assert store.held_documents() == []
        assert not store.write([build("a", ["two"], token=1)])[0].fenced

    def test_empty_calls(self, store):
        """Nothing to write or remove is nothing to report."""
        assert store.write([]) == []
        assert store.remove([]) == []
        assert store.held_chunks([]) == {}
