"""What every artifact store keeps: subclass `ArtifactStoreContract`, give it a store."""

from abc import ABC, abstractmethod

import pytest

from resources.artifact_store.artifact import Artifact, Entry, Piece, Place, chunks_of, chunkset_hash, entry_id
from resources.artifact_store.artifact_key import digest_of, generation_of
from resources.artifact_store.artifact_store import ArtifactStore, KeptArtifact

KNOWN_TAG = "ca978112ca1bbdcafac231b39a23dc4d"
KNOWN_DIGEST = "4f5a3e3ee75e1415564a82bd964da37cab4affba78da10d299126f090ae5c193"
HOSTILE_TEXT = "'; DROP TABLE artifacts; -- \x00 \u202e 👩‍👩‍👧 日本語 \ufeff \n\r\t"


def artifact(document_id: str = "a", *texts: str, title: str = "Title") -> Artifact:
    """A document's artifact with these chunks and a statement for each."""
    place = Place(0, 9, ("Part", "Chapter"), page=1, last_page=2, sheet="Sheet", row=3, last_row=4)
    chunks = chunks_of(document_id, [Piece(text, place) for text in texts or ("one", "two")])
    entries = tuple(
        Entry(entry_id(document_id, chunk.chunk_id, "statement", chunk.text), "statement", chunk.text, chunk.chunk_id)
        for chunk in chunks
    )
    return Artifact(
        document_id, title, "text/markdown", "markdown 1", chunkset_hash(chunks), chunks, entries, ("a warning",)
    )


class ArtifactStoreContract(ABC):
    @pytest.fixture
    @abstractmethod
    def store(self, tmp_path) -> ArtifactStore:
        """A store in which nothing was kept yet."""

    @abstractmethod
    def reopened(self, store: ArtifactStore) -> ArtifactStore:
        """The same store, as another process sees it."""

    def test_artifacts_of_a_document_are_found(self, store):
        """All artifacts of the documents asked for are found by their ids, with their keys, and no others."""
        ours, others = [artifact("a", "one"), artifact("a", "two"), artifact("b", "one")], [artifact("c", "one")]
        keys = store.put_many([*ours, *others])
        assert dict(store.of_documents(["a", "b", "unknown"])) == dict(zip(keys, ours, strict=False))
        assert list(store.of_documents([])) == []

    def test_empty(self, store):
        """Nothing is found in an empty store, and putting nothing is nothing."""
        assert store.get_many(["x"]) == {}
        assert store.get_many([]) == {}
        assert store.put_many([]) == []
        assert store.read_hint("x") is None

    def test_round_trip(self, store):
        """An artifact comes back whole, chunk for chunk, places, entries and warnings included."""
        given = artifact("a", "one", HOSTILE_TEXT, "one")
        [key] = store.put_many([given])
        assert store.get_many([key]) == {key: given}

    def test_keys_stand_in_order(self, store):
        """The keys of a call stand in the order of its artifacts."""
        given = [artifact(f"d{i}") for i in range(50)]
        keys = store.put_many(given)
        assert len(set(keys)) == 50
        found = store.get_many(keys)
        assert [found[key].document_id for key in keys] == [f"d{i}" for i in range(50)]

    def test_same_content_same_key(self, store):
        """Equal artifacts have one key, in one call and in several, and are kept once."""
        first, second = store.put_many([artifact(), artifact()])
        [third] = store.put_many([artifact()])
        assert first == second == third
        assert len(store.get_many([first])) == 1

    @pytest.mark.parametrize(
        "other", [artifact("b"), artifact("a", "two", "one"), artifact("a", "one"), artifact(title="Other")]
    )
    def test_other_content_other_key(self, store, other):
        """Whatever differs, the key differs: document, order, number, title."""
        assert len(set(store.put_many([artifact(), other]))) == 2

    def test_key_does_not_depend_on_the_store(self, store, tmp_path):
        """The key is of the content alone, so it may be compared between stores; it never changes between versions."""
        assert store.put_many([artifact("a", "one")]) == [f"{KNOWN_TAG}.0.{KNOWN_DIGEST}"]

    def test_missing_keys_are_left_out(self, store):
        """Of several keys those that are there are found."""
        [key] = store.put_many([artifact()])
        assert set(store.get_many([key, "0" * 64])) == {key}

    def test_others_see_it(self, store):
        """What was put is there for another process at once."""
        [key] = store.put_many([artifact()])
        store.write_hint("h", b"1")
        again = self.reopened(store)
        assert again.get_many([key]) == {key: artifact()}
        assert again.read_hint("h") == b"1"

    def test_large_artifact(self, store):
        """A book is an artifact like any other."""
        given = artifact("book", *(f"paragraph {i} " * 50 for i in range(5000)))
        [key] = store.put_many([given])
        assert store.get_many([key])[key] == given

    def test_hints(self, store):
        """A hint is what was written last under its name, any bytes, and names are apart."""
        store.write_hint("a", b"\x00\xff" * 1000)
        store.write_hint("a", b"new")
        store.write_hint("b/ü 日本", b"")
        assert (store.read_hint("a"), store.read_hint("b/ü 日本"), store.read_hint("c")) == (b"new", b"", None)

    def test_generation_is_in_the_key(self, store):
        """Once a generation is closed no key of it is given again, in any process, and what it holds stays readable."""
        [old] = store.put_many([artifact()])
        assert store.begin_generation() == 1
        for process in (store, self.reopened(store)):
            [new] = process.put_many([artifact()])
            assert (generation_of(old), generation_of(new)) == (0, 1)
            assert digest_of(old) == digest_of(new)
        assert set(store.get_many([old, new])) == {old, new}
        assert self.reopened(store).begin_generation() == 2

    def test_pages(self, store):
        """The pages name each artifact once, in order, with what it takes; hints and generations are none."""
        assert self.kept(store) == []
        keys = store.put_many([artifact(f"d{i}") for i in range(30)])
        store.write_hint("listing/docs", b"x")
        store.begin_generation()
        assert [kept.key for kept in self.kept(store)] == sorted(keys)
        assert all(kept.n_bytes > 0 for kept in self.kept(store))

    def test_remove(self, store):
        """What is removed is gone, for every process, and nothing else; again, or what never was, changes nothing."""
        one, two = store.put_many([artifact("a"), artifact("b")])
        for _ in range(2):
            store.remove_many([one, "0" * 64])
            assert [kept.key for kept in self.kept(self.reopened(store))] == [two]
        store.remove_many([])
        assert store.get_many([one, two]) == {two: artifact("b")}

    def test_remove_many(self, store):
        """More artifacts than one request can name are removed all the same."""
        keys = store.put_many([artifact("a", f"text {i}") for i in range(1_100)])
        store.remove_many(keys[1:])
        assert [kept.key for kept in self.kept(store)] == keys[:1]

    def test_remove_documents(self, store):
        """Every version of a document goes, of every generation; a document of equal content keeps its own."""
        old = store.put_many([artifact("a"), artifact("a", "older"), artifact("b"), artifact("ab")])
        store.begin_generation()
        new = store.put_many([artifact("a"), artifact("b")])
        for _ in range(2):
            store.remove_documents(["a", "never known"])
            assert {kept.key for kept in self.kept(store)} == {*old[2:], new[1]}
        store.remove_documents([])

    @staticmethod
    def kept(store: ArtifactStore) -> list[KeptArtifact]:
        """All that the pages name."""
        return [kept for page in store.pages() for kept in page]
