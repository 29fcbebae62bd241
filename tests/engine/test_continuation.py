"""Where the extraction of a conversation goes on, and what it remembers."""

from ingest_assets.engine.conversation import continuation, continued_parts, memories, whole_turns
from resources.artifact_store.artifact import Artifact, Entry, Piece, Place, chunks_of


def chunks(*texts):
    """Chunks of turns; a text in a list is a piece of the same turn as its neighbours in it."""
    pieces = [
        Piece(piece, Place(0, len(piece), turn=turn))
        for turn, text in enumerate(texts)
        for piece in ([text] if isinstance(text, str) else text)
    ]
    return chunks_of("d", pieces)


def artifact(*texts):
    """What extraction made of such turns: an entry for each chunk."""
    made = chunks(*texts)
    entries = tuple(Entry(f"e {chunk.text}", "memory", chunk.text, chunk.chunk_id) for chunk in made)
    return Artifact("d", "t", "m", "p", "h", made, entries)


def goes_on(before, now, last_turn):
    """First turn, kept entries and texts to be extracted."""
    found = continuation(chunks(*now), before and artifact(*before), last_turn)
    return found.first_turn, [entry.text for entry in found.kept], [chunk.text for chunk in found.chunks]


def test_goes_on_after_the_pointer():
    """Turns after the pointer are extracted, also those that were there before."""
    assert goes_on(["a", "b", "c"], ["a", "b", "c", "d"], 1) == (2, ["a", "b"], ["c", "d"])
    assert goes_on(["a", "b"], ["a", "b"], 1) == (2, ["a", "b"], [])


def test_goes_back_before_what_changed():
    """An edited turn, one put in between, or a long turn that reads otherwise anywhere."""
    assert goes_on(["a", "b", "c"], ["a", "B", "c"], 2) == (1, ["a"], ["B", "c"])
    assert goes_on(["a", "c"], ["a", "b", "c"], 1) == (1, ["a"], ["b", "c"])
    assert goes_on(["a", ["b", "c"]], ["a", ["b", "C"]], 1) == (1, ["a"], ["b", "C"])


def test_goes_back_before_what_is_gone():
    """Of turns that are not there any more nothing is kept, and nothing is to be extracted."""
    assert goes_on(["a", "b", "c"], ["a"], 2) == (1, ["a"], [])


def test_begins_at_the_first_turn():
    """Without a pointer, or without what was extracted."""
    assert goes_on(["a"], ["a", "b"], None) == (0, [], ["a", "b"])
    assert goes_on(None, ["a", "b"], 0) == (0, [], ["a", "b"])


def test_what_is_no_turn_is_not_extracted():
    """Values beside the turns are chunks like others, and nothing is asked about them."""
    beside = chunks_of("d", [Piece("title", Place(0, 5))])
    assert continuation(beside, None, None).chunks == ()


def test_a_turn_is_done_with_its_last_piece():
    """A long turn whose pieces went into two calls is not done before the second."""
    made = chunks("a", ["b", "c"], "d")
    assert [[chunk.text for chunk in whole_turns(made, n)] for n in range(1, 5)] == [
        ["a"], ["a"], ["a", "b", "c"], ["a", "b", "c", "d"],
    ]  # fmt: skip


def test_what_is_said_again_is_remembered_once():
    """The first place wins, whatever the letters' case and spaces; another organisation's memory is another."""
    said = [Entry("1", "statement", "We like tea.", "c1"), Entry("2", "statement", "we  LIKE tea.", "c2")]
    [memory] = memories("org", "d", [], said)
    assert (memory.kind, memory.text, memory.chunk_id) == ("memory", "We like tea.", "c1")
    assert memories("org", "d", [memory], said) == (memory,)
    [other] = memories("other", "d", [], said)
    assert other.entry_id != memory.entry_id


def test_entries_that_are_kept_keep_the_configuration_that_found_them():
    """Extractor, model and prompt are of before; how the text is read and cut is of now."""
    before = {"content": "1", "parser": "1", "chunker": "1", "extractor": "llm 1", "model": "a"}
    now = {"content": "2", "parser": "2", "chunker": "2", "extractor": "local 1"}
    assert continued_parts(now, before) == {
        "content": "2", "parser": "2", "chunker": "2", "extractor": "llm 1", "model": "a",
    }  # fmt: skip
