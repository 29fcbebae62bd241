"""Ids and hashes of chunks and entries: the same for equal input, for ever, and different for all else."""

from hypothesis import given
from hypothesis import strategies as st

from resources.artifact_store.artifact import Piece, Place, chunks_of, chunkset_hash, entry_id, short_hash

ANYWHERE = Place(0, 1)


def chunks(document_id: str, *texts: str, place: Place = ANYWHERE):
    """Chunks of these texts."""
    return chunks_of(document_id, [Piece(text, place) for text in texts])


def test_known_vectors():
    """Ids that stand in people's stores may never change."""
    assert short_hash("a", b"b") == "3c9d591045bc8876f9d0399bbfb05c6a"
    assert chunks("doc", "text")[0].chunk_id == "5afcb016788d933b9e61e4335a2939bd"
    assert chunkset_hash(chunks("doc", "one", "two")) == "498df273324bee201df861e314588ff2"
    assert entry_id("doc", "chunk", "statement", "text") == "1966b5bdd2ce78a7f569312cedbb521e"


def test_parts_cannot_be_shifted():
    """Where one part ends and the next begins is part of the hash."""
    assert len({short_hash("ab", "c"), short_hash("a", "bc"), short_hash("abc"), short_hash("", "abc")}) == 4


def test_lone_surrogates_have_a_hash():
    """Text that cannot be encoded strictly has a hash all the same."""
    assert short_hash("\ud800") != short_hash("\ud801")


def test_unchanged_chunk_keeps_its_id():
    """Text before it and another place change no chunk's id."""
    before = {chunk.text: chunk.chunk_id for chunk in chunks("doc", "one", "two")}
    after = {chunk.text: chunk.chunk_id for chunk in chunks("doc", "zero", "one", "two", place=Place(7, 9, page=3))}
    assert before.items() <= after.items()


@given(st.lists(st.text(max_size=5), max_size=20))
def test_ids_are_unique_in_a_document(texts):
    """Equal texts in a document are different chunks."""
    ids = [chunk.chunk_id for chunk in chunks("doc", *texts)]
    assert len(set(ids)) == len(ids)


def test_documents_do_not_share_chunks():
    """The same text of another document is another chunk."""
    assert chunks("a", "text")[0].chunk_id != chunks("b", "text")[0].chunk_id


@given(st.lists(st.text(max_size=5), max_size=6), st.lists(st.text(max_size=5), max_size=6))
def test_chunkset_hash_is_of_texts_and_order(one, other):
    """Two documents of the same texts in the same order share the hash, and no others do."""
    assert (chunkset_hash(chunks("a", *one)) == chunkset_hash(chunks("b", *other))) is (one == other)


def test_entry_id():
    """Document, chunk, kind and text each make another entry."""
    base = ("d", "c", "k", "t")
    others = [tuple("x" if i == n else part for i, part in enumerate(base)) for n in range(4)]
    assert len({entry_id(*parts) for parts in (base, *others)}) == 5
