"""Answers: the schema is enforced whatever comes back, and a finding that is not in its chunk is no entry."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.artifact_store.artifact import short_hash
from resources.extractor.llm.answer import (
    SCHEMA_VERSION,
    ChunkAnswer,
    MalformedAnswerError,
    Relation,
    Statement,
    Topic,
    answer_schema,
    read_answer,
)
from resources.extractor.llm.entries import entries_of
from resources.extractor.llm.prompt import ENTITIES_PER_CHUNK, STATEMENTS_PER_CHUNK
from resources.extractor.llm.quotation import is_quotation, normalized
from tests.extractor.llm.documents import chunks

NOTHING = {"statements": [], "entities": [], "relations": [], "topics": []}


def answered(**found):
    """What was found in one chunk."""
    return ChunkAnswer(**{**dict.fromkeys(NOTHING, ()), **found})


def test_the_schema_has_a_version():
    """Whoever changes what is asked for raises SCHEMA_VERSION, or kept answers would be taken for new ones."""
    fixed = json.dumps(answer_schema(), sort_keys=True)
    assert (SCHEMA_VERSION, short_hash(fixed)) == (1, "c595e44a5f1cef3bedce3ea617d1bbd5")


def test_the_schema_is_whole_in_itself():
    """There are no references in it, which some providers do not follow, and every field is required."""
    schema = answer_schema()
    assert "$" not in json.dumps(schema)
    chunk = schema["properties"]["chunks"]["items"]
    assert set(chunk["required"]) == set(chunk["properties"]) == {"chunk", *NOTHING}


def test_chunks_are_told_by_their_number():
    """The order of an answer does not matter, nor fields and chunks nobody asked for; what is said twice is joined."""
    raw = [
        {"chunk": 2, **NOTHING, "entities": ["B"], "status": "FAILED"},
        {"chunk": 1, **NOTHING, "entities": ["A"]},
        {"chunk": 2, **NOTHING, "entities": ["C"]},
        {"chunk": 9, **NOTHING, "entities": ["D"]},
    ]
    assert read_answer(json.dumps({"chunks": raw}), 2) == [answered(entities=("A",)), answered(entities=("B", "C"))]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "schema"),
        ("I cannot do that.", "schema"),
        ("[]", "schema"),
        ('{"chunks": [{"chunk": 1, "statements": []}]}', "missing"),
        ('{"chunks": [{"chunk": "1"}]}', "int"),
        ('{"chunks": []}', "chunks: 1, 2"),
        (json.dumps({"chunks": [{"chunk": 2, **NOTHING}]}), "chunks: 1."),
        ('{"chunks": ' + "[" * 100_000, "schema"),
    ],
)
def test_what_is_no_answer(text, says):
    """No JSON, another shape, a chunk left out, an answer nested without end: malformed, and the model is told why."""
    with pytest.raises(MalformedAnswerError, match=says):
        read_answer(text, 2)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text):
    """Whatever a model writes is read or malformed, never another error."""
    with contextlib.suppress(MalformedAnswerError):
        read_answer(text, 1)


@pytest.mark.parametrize(
    ("quotation", "found"),
    [
        ("the engine's first  part", True),
        ("The Engine", False),
        ("was “never” built", True),
        ("1843-1871", True),
        ("ﬁnished", True),
        ("", False),
        (" \u200b ", False),
        ("never was built", False),
    ],
)
def test_quotations_are_compared_by_what_is_seen(quotation, found):
    """Spaces, quotation marks, dashes and compatibility forms do not matter; letters, their case and order do."""
    chunk = 'Notes (1843\u20131871) on the engine\u2019s first\n part: it was "never" built, nor fin\u00adished.'
    assert is_quotation(quotation, normalized(chunk)) is found


@given(st.text(min_size=1, max_size=100), st.integers(0, 99), st.integers(1, 100))
def test_a_passage_of_a_chunk_is_a_quotation(text, start, length):
    """What was copied from a chunk word by word is found in it."""
    words = text.split()
    passage = " ".join(words[start % max(len(words), 1) :][:length])
    assert is_quotation(passage, normalized(text)) is bool(normalized(passage))


def test_entries_are_tied_to_their_chunk():
    """Each kind makes its text; a finding quoted from another chunk than its own is dropped and counted."""
    given_chunks = chunks("Ada wrote notes.", "Charles built engines.")
    found = entries_of(
        "d",
        given_chunks,
        [
            answered(
                statements=(Statement("Ada wrote some notes.", "wrote notes"), Statement("Wrong.", "built engines")),
                entities=("Ada", "Charles"),
            ),
            answered(
                relations=(Relation("Charles", "built", "engines", "Charles built engines."),),
                topics=(Topic("engines", "engines"), Topic(" ", "engines")),
            ),
        ],
    )
    first, second = (chunk.chunk_id for chunk in given_chunks)
    assert [(e.kind, e.text, e.chunk_id) for e in found.entries] == [
        ("statement", "Ada wrote some notes.", first),
        ("entity", "Ada", first),
        ("relation", "Charles built engines", second),
        ("topic", "engines", second),
    ]
    assert found.n_unquoted == 3


def test_an_entry_stands_once_in_a_document():
    """What two chunks say is tied to the first."""
    given_chunks = chunks("Ada wrote.", "Ada read.")
    found = entries_of("d", given_chunks, [answered(entities=("Ada",)), answered(entities=("Ada",))])
    assert [entry.chunk_id for entry in found.entries] == [given_chunks[0].chunk_id]


def test_number_and_length_are_bounded():
    """A chatty model makes no more entries than were asked for, and none is longer than a paragraph."""
    text = "word " * 100
    statements = tuple(Statement(f"{number} " + "x" * 5000, "word") for number in range(50))
    found = entries_of("d", chunks(text), [answered(statements=statements, entities=("word",) * 50)])
    kinds = [entry.kind for entry in found.entries]
    assert kinds.count("statement") == STATEMENTS_PER_CHUNK
    assert kinds.count("entity") == 1
    assert found.n_beyond == 50 - STATEMENTS_PER_CHUNK + 50 - ENTITIES_PER_CHUNK
    assert max(len(entry.text) for entry in found.entries) == 1000
