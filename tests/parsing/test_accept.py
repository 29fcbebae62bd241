"""A parser that was taken over: whatever it writes into its pipe, the parent keeps only text that is well formed."""

import json
import struct

import pytest

from ingest_assets.parsing import Chunking, ParseFailure, ParseLimits, ParserPool
from resources.document_state.reasons import Reason

GOOD = {
    "type": "parsed",
    "title": "t",
    "media_type": "text/plain",
    "parser": "p",
    "pieces": [{"text": "words", "place": {"start": 0, "end": 5}}],
    "n_chars": 5,
}


def reply(body: object, length: int | None = None) -> bytes:
    """A frame as a child would send it, or as none would."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return struct.pack(">II", len(raw) if length is None else length, 0) + raw


def outcome_of(monkeypatch: pytest.MonkeyPatch, answer: bytes, *, unpack: bool = False) -> object:
    """What the pool makes of a child that answers each document so."""
    boot = (
        "import os, struct, sys\n"
        "def take():\n"
        "    header, content = struct.unpack('>II', os.read(0, 8))\n"
        "    while header + content: header -= len(os.read(0, min(header + content, 65536)))\n"
        "take()\n"
        "ready = b'{\"missing\": []}'\n"
        "os.write(1, struct.pack('>II', len(ready), 0) + ready)\n"
        "while True:\n"
        "    take()\n"
        f"    os.write(1, {answer!r})\n"
    )
    monkeypatch.setattr("ingest_assets.parsing.worker._BOOT", boot)
    with ParserPool(1, ParseLimits(wall_seconds=2), Chunking()) as pool:
        return pool.unpack("x.zip", b"words", 0) if unpack else pool.parse("x.txt", b"words")


@pytest.mark.parametrize(
    "answer",
    [
        reply(GOOD | {"title": "two\nlines"}),
        reply(GOOD | {"title": ""}),
        reply(GOOD | {"title": "x" * 201}),
        reply(GOOD | {"media_type": "text/evil"}),
        reply(GOOD | {"pieces": []}),
        reply(GOOD | {"pieces": [{"text": " ", "place": {"start": 0, "end": 1}}]}),
        reply(GOOD | {"pieces": [{"text": "a\x00b", "place": {"start": 0, "end": 3}}]}),
        reply(GOOD | {"pieces": [{"text": "a\x1b[31m", "place": {"start": 0, "end": 3}}]}),
        reply(GOOD | {"pieces": [{"text": "a", "place": {"start": 0, "end": 1, "headings": ["\x07"]}}]}),
        reply(GOOD | {"pieces": [{"text": "a", "place": {"start": "0", "end": 1}}]}),
        reply(GOOD | {"pieces": [{"text": "\ud800", "place": {"start": 0, "end": 1}}]}),
        reply(GOOD | {"warnings": ["x"] * 51}),
        reply(GOOD | {"warnings": ["x" * 1000]}),
        reply(GOOD | {"empty_pages": -1}),
        reply({"type": "failed", "reason": "store_unavailable", "detail": "d"}),
        reply({"type": "failed", "reason": "no_such_reason", "detail": "d"}),
        reply({"type": "something"}),
        reply(b"cos\nsystem\n(S'true'\ntR."),
        reply(b""),
        reply(b"{}", length=2**32 - 1),
        b"",
    ],
)
def test_no_reply_but_an_honest_one_counts(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    """What no child of ours would send ends as the document's crash or timeout, and reaches nobody."""
    outcome = outcome_of(monkeypatch, answer)
    assert isinstance(outcome, ParseFailure)
    assert outcome.reason in {Reason.PARSER_CRASHED, Reason.TIMED_OUT}


def test_an_honest_reply_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same child with a fair answer is believed: the test above can fail."""
    assert not isinstance(outcome_of(monkeypatch, reply(GOOD)), ParseFailure)


def test_a_failures_sentence_is_fit_to_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escapes for a terminal, line ends and lengths in a failure's sentence do not come through."""
    outcome = outcome_of(monkeypatch, reply({"type": "failed", "reason": "malformed", "detail": "\x1b[2J\n" * 500}))
    assert isinstance(outcome, ParseFailure)
    assert outcome.reason is Reason.MALFORMED
    assert outcome.detail.isprintable()
    assert len(outcome.detail) <= 300


@pytest.mark.parametrize(
    "answer",
    [
        {"members": [{"name": "a"}], "is_last": True},
        {"type": "unpacked", "members": [], "is_last": False},
        {"type": "unpacked", "members": [{"name": "a", "reason": "store_damaged"}], "is_last": True},
        {"type": "unpacked", "members": [{"name": "a", "reason": "malformed", "detail": "x" * 5000}], "is_last": True},
        {"type": "unpacked", "members": [{"name": "a", "content": "no base64!"}], "is_last": True},
        GOOD,
    ],
)
def test_lies_about_members_are_refused(monkeypatch: pytest.MonkeyPatch, answer: dict) -> None:
    """What no honest child says of a container is not believed, nor an answer to another question."""
    found = outcome_of(monkeypatch, reply(answer), unpack=True)
    assert isinstance(found, ParseFailure)
    assert found.reason is Reason.PARSER_CRASHED


def test_members_are_no_answer_to_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for text gets no list of members."""
    found = outcome_of(monkeypatch, reply({"type": "unpacked", "members": [], "is_last": True}))
    assert isinstance(found, ParseFailure)
    assert found.reason is Reason.PARSER_CRASHED
