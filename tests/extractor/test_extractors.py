"""Extractors: what each finds, what it leaves, and that hostile text does not slow it down."""

import subprocess
import sys
import time

import pytest

from resources.artifact_store.artifact import Piece, Place, chunks_of, entry_id
from resources.extractor.entities import entities_in
from resources.extractor.key_phrases import best_phrases, phrases_in
from resources.extractor.local_extractor import (
    ENTITIES_PER_CHUNK,
    PHRASES_PER_DOCUMENT,
    STATEMENTS_PER_CHUNK,
    LocalExtractor,
)
from resources.extractor.open_extractor import UnknownExtractorError, open_extractor
from resources.extractor.prose import is_statement, paragraphs_of

PROSE = """# Release notes

The release manager has to sign every build before it is published to the mirror.
Mr. Smith of Acme Corporation keeps the signing key, i.e. nobody else has it.
See https://example.org/keys, or write to keys@example.org by 2026-03-01.

```
The release manager = this is code and no sentence at all.
```

| The release manager | is in a table row that is no sentence. |

- A release manager may hand the signing key to another person for $1,200.50 a year.

Copyright 2026 by the authors of this text, all rights reserved for ever.
"""


def chunks(*texts, document_id="d"):
    """The chunks of a document."""
    return chunks_of(document_id, [Piece(text, Place(0, len(text))) for text in texts])


async def found(*texts):
    """Kind and text of the entries of these chunks."""
    return [(entry.kind, entry.text) for entry in await LocalExtractor().extract("d", chunks(*texts))]


async def test_statements_are_sentences_of_prose():
    """Whole sentences are found across line breaks; headings, code, tables and boilerplate are left."""
    statements = [text for kind, text in await found(PROSE) if kind == "statement"]
    assert statements == [
        "The release manager has to sign every build before it is published to the mirror.",
        "Mr. Smith of Acme Corporation keeps the signing key, i.e. nobody else has it.",
        "See https://example.org/keys, or write to keys@example.org by 2026-03-01.",
        "A release manager may hand the signing key to another person for $1,200.50 a year.",
    ]


async def test_key_phrases_are_what_a_document_repeats():
    """A phrase that comes again is a key phrase; one that comes once is not."""
    phrases = [text for kind, text in await found(PROSE) if kind == "key_phrase"]
    assert phrases == ["release manager", "signing key"]


async def test_entities_have_a_form():
    """Addresses, links, dates, money and names of several words."""
    assert [text for kind, text in await found(PROSE) if kind == "entity"] == [
        "keys@example.org",
        "https://example.org/keys",
        "2026-03-01",
        "Acme Corporation",
        "$1,200.50",
    ]


async def test_ids_are_those_of_the_artifact_and_order_is_that_of_chunks():
    """Each entry is tied to a chunk and has the id made of document, chunk, kind and text."""
    given = chunks("First sentence that is long enough to be one.", "Second sentence that is long enough to be one.")
    entries = await LocalExtractor().extract("d", given)
    assert [entry.chunk_id for entry in entries] == [chunk.chunk_id for chunk in given]
    assert all(e.entry_id == entry_id("d", e.chunk_id, e.kind, e.text) for e in entries)


async def test_an_entry_stands_once_in_a_document():
    """What two chunks say, as overlapping ones do, is tied to the first."""
    given = chunks(PROSE, f"{PROSE}\nThe last chunk says one thing more than the others did.")
    entries = await LocalExtractor().extract("d", given)
    assert len({(entry.kind, entry.text) for entry in entries}) == len(entries)
    assert [e.text for e in entries if e.chunk_id == given[1].chunk_id] == [
        "The last chunk says one thing more than the others did."
    ]


async def test_number_is_bounded():
    """However much a chunk or document says, the number of its entries has a bound."""
    text = "\n\n".join(
        f"Person{chr(97 + i % 26)} Number writes twice that the thing number {i} works well. "
        f"Mail a{i}@example.org about colour{chr(97 + i % 26)} wheel and colour{chr(97 + i % 26)} wheel."
        for i in range(200)
    )
    kinds = [kind for kind, _ in await found(text)]
    assert kinds.count("statement") == STATEMENTS_PER_CHUNK
    assert kinds.count("entity") == ENTITIES_PER_CHUNK
    assert kinds.count("key_phrase") == PHRASES_PER_DOCUMENT


def test_same_entries_in_every_process():
    """Nothing depends on the hash seed."""
    code = (
        "import asyncio; from tests.extractor.test_extractors import found, PROSE\n"
        "print(asyncio.run(found(PROSE, PROSE + ' More release notes, more release notes.')))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a" * 500_000,
        "[" * 50_000,
        "Aa " * 150_000,
        "AaAa" * 100_000,
        "A a. " * 100_000,
        "a@" * 200_000,
        "a.b@c." * 80_000,
        "$1" * 200_000,
        "http://" * 70_000,
        "2020-01-01" * 50_000,
        "x\n" * 200_000,
        "Mr. " * 100_000,
        "word " * 100_000,
        "```\n" * 100_000,
        "-" * 500_000,
    ],
    ids=lambda text: repr(text[:8]),
)
async def test_hostile_text_takes_linear_time(text):
    """Half a megabyte of anything takes no longer than half a megabyte of prose, about a tenth of a second."""
    start = time.process_time()  # ours alone: beside other work the clock on the wall runs on
    entries = await LocalExtractor().extract("d", chunks(text))
    assert time.process_time() - start < 2
    assert len(entries) < 20


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "'; DROP TABLE x; --", "👩‍👩‍👧" * 50, "\u202eערב טוב" * 20, "\x01\x02\ufeff\uffff"]
)
async def test_odd_text_fails_nowhere(text):
    """Empty, right-to-left and control characters give no entry and no error."""
    assert await found(text) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Too short a sentence.",
        "this one begins in the middle of something that was said before.",
        "This one ends in the middle of something that was going to be",
        "The value is set by writing self.x == other.x in the loop body here.",
        "All Rights Reserved by the authors of this text and their heirs.",
        f"{'Word ' * 100}ends.",
    ],
)
def test_what_is_no_statement(sentence):
    """Fragments, code, boilerplate and walls of text are no statements."""
    assert not is_statement(sentence)


def test_paragraphs_join_lines_and_leave_the_rest():
    """Hard-wrapped lines are one paragraph; rules, code, tables and headings are none."""
    text = (
        "One line\nand another.\n\n    indented code\n=====\n- item one\n- item two\nwent on\n\ta\tb\nx = {\n| a | b |"
    )
    assert list(paragraphs_of(text)) == ["One line and another.", "item one", "item two went on"]


def test_phrases_end_at_stop_words_and_punctuation():
    """What stands between them is a candidate; numbers, paths and addresses are none."""
    text = "The access token, (refresh token) and the e-mail of https://a.b/c are in /etc/passwd 42 times: audit log."
    assert phrases_in(text) == ["access token", "refresh token", "e-mail", "times", "audit log"]


def test_best_phrases_are_ranked_by_count_and_length():
    """More often and longer is better; equals keep the order they came in."""
    candidates = ["one two", "six", "three four five", "one two", "six", "three four five", "a b", "a b", "once only"]
    assert best_phrases(candidates, 10) == ["three four five", "one two", "a b"]
    assert best_phrases(candidates, 1) == ["three four five"]


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("Write to a.b+c@example.co.uk, please.", ["a.b+c@example.co.uk"]),
        ("See (https://example.org/a_(b)?c=d).", ["https://example.org/a_(b)?c=d"]),
        ("On 3 March 2026 and March 4, 2026.", ["3 March 2026", "March 4, 2026"]),
        ("It costs €1,000 or USD 20.50, not $5x.", ["€1,000", "USD 20.50", "$5"]),
        ("The Python Package Index of New York.", ["Python Package Index", "New York"]),
        ("someThing Else, camelCase Word2 and Version-One Two-three.", []),
        ("Not a date: 12026-01-01, 2026-01-011.", []),
    ],
)
def test_entities(text, entities):
    """Each form as it is written, without the punctuation around it."""
    assert list(entities_in(text)) == entities


async def test_none_finds_nothing():
    """Chunks only."""
    assert await open_extractor("none").extract("d", chunks(PROSE)) == ()


def test_extractors_by_name():
    """The default is the local one; an unknown name lists the known."""
    assert isinstance(open_extractor(), LocalExtractor)
    with pytest.raises(UnknownExtractorError, match=r"'llm'\. Known: local, none"):
        open_extractor("llm")
