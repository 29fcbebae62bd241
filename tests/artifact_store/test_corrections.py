"""Corrections of chunks, as functions on artifacts: nobody's text is lost, and no id comes to mean another chunk."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.artifact_store.artifact import (
    Artifact,
    Entry,
    Piece,
    Place,
    artifact_hash,
    chunks_of,
    chunkset_hash,
    entry_id,
)
from resources.artifact_store.corrections import (
    ChunkChangedError,
    Signature,
    UnknownChunkError,
    carried_over,
    corrected,
    corrections_of,
    is_as_shown,
    restored,
    warnings_of,
    with_lost_corrections,
)

ANN = Signature("ann", datetime(2026, 1, 1, 12, tzinfo=UTC), "typo")
BOB = Signature("bob", datetime(2026, 1, 2, 12, tzinfo=UTC))
texts_of_documents = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


def artifact(*texts: str) -> Artifact:
    """What extraction makes of these texts: a chunk and a statement each."""
    chunks = chunks_of("doc", [Piece(text, Place(i * 10, i * 10 + 9)) for i, text in enumerate(texts)])
    entries = tuple(
        Entry(entry_id("doc", c.chunk_id, "statement", f"said {c.text}"), "statement", f"said {c.text}", c.chunk_id)
        for c in chunks
    )
    return Artifact("doc", "Title", "text/plain", "plain", chunkset_hash(chunks), chunks, entries)


def correct(document: Artifact, at: int, text: str, signature: Signature = ANN) -> Artifact:
    """The artifact with another text in one chunk."""
    return corrected(document, {document.chunks[at].chunk_id: text}, signature)


def texts(document: Artifact) -> list[str]:
    """The texts of the chunks."""
    return [chunk.text for chunk in document.chunks]


def test_a_correction_keeps_who_when_and_what_was():
    """The corrected chunk has the new text at its place, and says what extraction had made of it; no other differs."""
    before = artifact("one", "two", "three")
    after = correct(before, 1, "zwei")
    chunk = after.chunks[1]
    assert (chunk.text, chunk.place) == ("zwei", before.chunks[1].place)
    assert chunk.correction.original_text == "two"
    assert (chunk.correction.by, chunk.correction.at, chunk.correction.note) == ("ann", ANN.at, "typo")
    assert (after.chunks[0], after.chunks[2]) == (before.chunks[0], before.chunks[2])
    assert after.chunkset_hash == chunkset_hash(after.chunks) != before.chunkset_hash


def test_entries_go_with_their_chunk():
    """Entries keep kind and text, name the corrected chunk, and have the ids that follow from it."""
    before = artifact("one", "two")
    after = correct(before, 1, "zwei")
    assert [(e.kind, e.text) for e in after.entries] == [(e.kind, e.text) for e in before.entries]
    assert after.entries[0] == before.entries[0]
    assert after.entries[1].chunk_id == after.chunks[1].chunk_id
    assert all(e.entry_id == entry_id("doc", e.chunk_id, e.kind, e.text) for e in after.entries)


def test_correcting_twice_keeps_the_first_original():
    """What extraction had made stays what is gone back to; the last person is named."""
    twice = correct(correct(artifact("one", "two"), 1, "zwei"), 1, "deux", BOB)
    assert twice.chunks[1].correction.original_text == "two"
    assert twice.chunks[1].correction.by == "bob"
    assert restored(twice, [twice.chunks[1].chunk_id]) == artifact("one", "two")


def test_correcting_to_what_it_was_leaves_no_correction():
    """A chunk with the text that extraction made of it is not corrected, however it came there."""
    assert correct(correct(artifact("one", "two"), 1, "zwei"), 1, "two") == artifact("one", "two")
    assert correct(artifact("one", "two"), 1, "two") == artifact("one", "two")


def test_a_text_that_another_chunk_has():
    """Equal texts are different chunks, and only the corrected one has another id."""
    before = artifact("one", "two", "one")
    after = correct(before, 1, "one")
    assert texts(after) == ["one", "one", "one"]
    assert len({chunk.chunk_id for chunk in after.chunks}) == 3
    assert [after.chunks[i].chunk_id == before.chunks[i].chunk_id for i in range(3)] == [True, False, True]


def test_an_id_never_comes_to_mean_another_chunk():
    """Of two chunks of one text the first is corrected: its old id still means it, and not the second."""
    before = artifact("same", "same")
    after = correct(before, 0, "other")
    with pytest.raises(ChunkChangedError, match="changed by ann at 2026-01-01 12:00:00 UTC"):
        corrected(after, {before.chunks[0].chunk_id: "mine"}, BOB)
    swapped = correct(artifact("one", "two"), 0, "three")
    swapped = correct(swapped, 1, "one")
    with pytest.raises(ChunkChangedError):
        corrected(swapped, {artifact("one", "two").chunks[0].chunk_id: "mine"}, BOB)


def test_unknown_chunks_are_refused():
    """An id that no chunk has, or a corrected chunk had in between, changes nothing."""
    once = correct(artifact("one"), 0, "eins")
    twice = correct(once, 0, "un")
    for change in (
        lambda: corrected(twice, {once.chunks[0].chunk_id: "x"}, BOB),
        lambda: restored(twice, ["nonsense"]),
    ):
        with pytest.raises(UnknownChunkError, match="Show its chunks again"):
            change()


def test_taking_one_back_leaves_the_others():
    """Only the chunks that are named get their original."""
    both = correct(correct(artifact("one", "two"), 0, "eins"), 1, "zwei")
    assert texts(restored(both, [both.chunks[0].chunk_id])) == ["one", "zwei"]


def test_who_and_when_make_no_other_content():
    """Two people who correct a chunk to the same text make the same content, other than the original."""
    before = artifact("one", "two")
    by_ann, by_bob = correct(before, 1, "zwei"), correct(before, 1, "zwei", BOB)
    assert artifact_hash(by_ann) == artifact_hash(by_bob) != artifact_hash(before)


def test_the_same_extraction_again_carries_all_over():
    """Unchanged content, extracted again, gives the corrected artifact as it was."""
    before = correct(correct(artifact("one", "two", "one"), 1, "one"), 2, "three", BOB)
    assert carried_over(artifact("one", "two", "one"), before) == before


def test_carried_over_to_another_place():
    """A correction goes with its text wherever that moves, into the place the new extraction found."""
    after = carried_over(artifact("zero", "two", "one"), correct(artifact("one", "two"), 1, "zwei"))
    assert texts(after) == ["zero", "zwei", "one"]
    assert after.chunks[1].place == artifact("zero", "two", "one").chunks[1].place


def test_changed_content_makes_a_correction_void():
    """Where the corrected text is gone, the new content stands, and the person's work is kept and told of."""
    before = correct(artifact("one", "two"), 1, "zwei")
    after = carried_over(artifact("one", "other"), before)
    assert texts(after) == ["one", "other"]
    assert after.void_corrections == (before.chunks[1],)
    assert artifact_hash(after) == artifact_hash(artifact("one", "other"))
    assert warnings_of(after) == ("1 correction is void: the document does not have the corrected text any more.",)
    assert warnings_of(before) == ()


def test_void_corrections_come_back_with_their_text():
    """Content that is as it was, two changes later, is corrected again."""
    before = correct(artifact("one", "two"), 1, "zwei")
    gone = carried_over(artifact("one"), before)
    still_gone = carried_over(artifact("three"), gone)
    assert carried_over(artifact("one", "two"), still_gone) == before


def test_a_void_correction_can_be_dropped():
    """Taken back, nothing is left of it, and nothing else changes."""
    void = carried_over(artifact("one"), correct(artifact("one", "two"), 1, "zwei"))
    assert restored(void, [void.void_corrections[0].chunk_id]) == artifact("one")


def test_the_source_is_mended_as_the_person_did():
    """The new content has the corrected text itself: each chunk has an id of its own, and the store keeps the row."""
    before = correct(artifact("one", "two"), 1, "zwei")
    after = carried_over(artifact("one", "zwei"), before)
    assert [chunk.chunk_id for chunk in after.chunks] == [chunk.chunk_id for chunk in before.chunks]
    both = carried_over(artifact("zwei", "two"), correct(artifact("one", "two"), 1, "zwei"))
    assert texts(both) == ["zwei", "zwei"]
    assert both.chunks[0].chunk_id != both.chunks[1].chunk_id


def test_lost_corrections_are_told():
    """Corrections that went with their artifact are counted in a warning."""
    assert "2 corrections were lost" in with_lost_corrections(artifact("one"), 2).warnings[0]


def test_what_was_shown_is_known_by_its_id():
    """An id proves the text it was shown with, also of a corrected chunk, and no other text."""
    document = correct(artifact("one", "two", "one"), 1, "one")
    for chunk in document.chunks:
        assert is_as_shown("doc", chunk.chunk_id, chunk.text)
        assert not is_as_shown("doc", chunk.chunk_id, chunk.text + " ")


@given(texts_of_documents, st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abcd"))), texts_of_documents)
def test_nothing_is_lost_whatever_happens(first, edits, second):
    """Whatever is corrected and extracted anew, ids are unique, originals are kept, and all can be taken back."""
    document = artifact(*first)
    for at, text in edits:
        if at < len(document.chunks):
            document = correct(document, at, text)
    assert [c.correction.original_text if c.correction else c.text for c in document.chunks] == first
    changed = carried_over(artifact(*second), document)
    assert len(corrections_of(changed)) == len(corrections_of(document))
    back = carried_over(artifact(*first), changed)
    assert [(c.text, c.correction) for c in back.chunks] == [(c.text, c.correction) for c in document.chunks]
    for found in (document, changed, back):
        assert len({chunk.chunk_id for chunk in found.chunks}) == len(found.chunks)
    assert restored(changed, [chunk.chunk_id for chunk in corrections_of(changed)]) == artifact(*second)
