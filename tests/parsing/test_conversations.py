"""Transcripts: which JSON is one, and how a turn reads."""

import json

import pytest

from ingest_assets.parsing import CONVERSATION, Chunking, ParsedDocument, ParseLimits
from ingest_assets.parsing.document import parse

USER, ASSISTANT = {"role": "user", "content": "Hi there"}, {"role": "assistant", "content": "Good day"}
ANN = {"speaker": "Ann", "text": "Hi there"}


def parsed(value: object, name: str = "x.json", size: int = 1000) -> ParsedDocument:
    """Parse a value, or a text as it is."""
    content = value if isinstance(value, str) else json.dumps(value)
    outcome = parse(name, content.encode(), ParseLimits(), Chunking(size=size))
    assert isinstance(outcome, ParsedDocument), outcome
    return outcome


def turns(document: ParsedDocument) -> list[tuple[int | None, str]]:
    """Turn and text of each piece."""
    return [(piece.place.turn, piece.text) for piece in document.pieces]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([USER, ASSISTANT], "x.json"),
        ({"messages": [USER, ASSISTANT]}, "x.json"),
        ({"turns": [USER, ASSISTANT]}, "x.json"),
        ({"conversations": [{"from": "user", "value": "Hi there"}, {"from": "assistant", "value": "Good day"}]}, "x"),
        (f"{json.dumps(USER)}\n\n{json.dumps(ASSISTANT)}\n", "x.jsonl"),
        (f"{json.dumps(USER)}\n{json.dumps(ASSISTANT)}\n", "x.json"),
    ],
)
def test_a_transcript_is_known_by_its_shape(value: object, name: str) -> None:
    """A list of turns, bare, named, or a turn a line, is a conversation: a piece for each turn, counted from 0."""
    document = parsed(value, name)
    assert document.media_type == CONVERSATION
    assert turns(document) == [(0, "user: Hi there"), (1, "assistant: Good day")]
    assert document.pieces[1].place.headings == ("turn 1",)


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "Engineer", "text": "builds things"}],
        [{"name": "Ann", "text": "a review"}],
        {"from": "ann@example.org", "body": "a letter"},
        [USER, {"id": 1}],
        {"messages": [USER], "turns": [USER]},
        {"session_1": [ANN], "session_2": "no turns"},
        {"messages": "none of these"},
        [[USER], [USER]],
    ],
)
def test_other_json_stays_json(value: object) -> None:
    """What is not clearly a transcript is read as any JSON."""
    assert parsed(value).media_type == "application/json"


def test_sessions_are_in_the_order_of_their_numbers() -> None:
    """LoCoMo's sessions: turns count on from one to the next, and carry the session's name and time."""
    sessions = {f"session_{n}": [{"speaker": "Ann", "text": f"It is {n}"}] for n in (10, 2, 1)}
    document = parsed({**sessions, "session_2_date_time": "8 May, 2023", "speaker_a": "Ann"})
    assert turns(document) == [
        (0, "Ann: It is 1"),
        (1, "Ann, 8 May, 2023: It is 2"),
        (2, "Ann: It is 10"),
        (None, "speaker_a: Ann"),
    ]
    assert document.pieces[1].place.headings == ("session 2", "turn 1")
    assert document.title == "Ann"


def test_a_turn_says_who_and_when_and_what() -> None:
    """Speaker, role and time stand before the words; other words of a turn stay, its ids and addresses do not."""
    turn = {
        "index": 7, "role": "user", "speaker": "Ann\nLee", "time": "2024-05-08", "content": "Look at this.",
        "caption": "a photo of a dog", "id": "a7f", "img_url": ["https://example.org/a dog.png"],
    }  # fmt: skip
    assert turns(parsed([turn])) == [(0, "Ann Lee (user), 2024-05-08: Look at this.\ncaption: a photo of a dog")]


def test_words_in_parts_and_none_at_all() -> None:
    """Content in parts is put together; a turn without words counts, and gives no piece."""
    parts = {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]}
    assert turns(parsed([{"role": "assistant", "content": None}, parts])) == [(1, "user: One\ntwo")]


def test_a_long_turn_is_several_pieces() -> None:
    """All of them of the same turn, none with words of another."""
    document = parsed([{"role": "user", "content": "word " * 100}, ASSISTANT], size=200)
    assert [piece.place.turn for piece in document.pieces] == [0, 0, 0, 1]


def test_a_new_turn_changes_no_earlier_piece() -> None:
    """Texts and places of the turns before it are the same."""
    before, after = parsed([USER, ASSISTANT]), parsed([USER, ASSISTANT, USER])
    assert after.pieces[:2] == before.pieces
