"""A transcript as its turns, each `speaker, time: words`, so that it grows at its end and nowhere else.

What is clearly one: a list of turns, by itself, as JSON Lines, or in an object under a name such as `messages`; and
`session_1`, `session_2`, … with their turns, as LoCoMo has them. Values beside the turns stand behind them as the
lines of any JSON, and belong to no turn.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ingest_assets.parsing.formats import CONVERSATION
from ingest_assets.parsing.formats.json_values import Pairs, lines_of, write_value
from ingest_assets.parsing.text import Source, Text

_LISTS = ("messages", "turns", "conversation", "conversations", "dialogue", "dialog", "transcript")
_SESSION = re.compile(r"session_(\d{1,6})", re.ASCII)
_ROLES = frozenset(
    ["user", "assistant", "system", "developer", "tool", "function", "human", "ai", "gpt", "model", "bot", "agent"]
)
_SPEAKERS = ("speaker", "sender")
_TIMES = ("time", "timestamp", "date_time", "datetime", "created_at", "date", "ts")
_WORDS = ("content", "text", "message", "value", "body")
_TITLES = ("title", "name", "subject")
_MOST_IN_TITLE = 3


class Turn(NamedTuple):
    """One turn: who, when (both may be empty), what, and what else it says in words."""

    speaker: str
    time: str
    words: str
    more: tuple[str, ...] = ()


class Session(NamedTuple):
    """Turns that were spoken together; its name and time may be empty."""

    name: str
    time: str
    turns: Sequence[Turn]


class Transcript(NamedTuple):
    """Sessions in order, and the values beside them."""

    sessions: Sequence[Session]
    title: str = ""
    rest: Pairs | None = None


def transcript_of(value: Any) -> Transcript | None:
    """The transcript that a decoded value is; None if it is not clearly one."""
    if isinstance(value, Pairs):
        return _in_sessions(value) or _in_object(value)
    turns = _turns(value)
    return Transcript([Session("", "", turns)]) if turns else None


def write(transcript: Transcript, source: Source, text: Text) -> None:
    """Write the turns, each marked and never cut into one piece with another, then the other values."""
    text.markdown = False
    text.media_type = CONVERSATION
    text.suggest_title(transcript.title or _speakers(transcript))
    text.suggest_title(PurePosixPath(source.filename).stem)
    number = 0
    for session in transcript.sessions:
        text.mark_heading(1, session.name)
        for turn in session.turns:
            text.turn(number)
            text.mark_heading(2, f"turn {number}")
            _write_turn(turn, session.time, text)
            number += 1
    if transcript.rest:
        text.turn(None)
        text.mark_heading(1, "beside the turns")
        write_value("", transcript.rest, text)


def _write_turn(turn: Turn, session_time: str, text: Text) -> None:
    if not turn.words and not turn.more:
        return
    when = turn.time or session_time
    who = ", ".join(part for part in (turn.speaker, when) if part)
    text.add(f"{who}: {turn.words}\n" if who else f"{turn.words}\n")
    for line in turn.more:
        text.add(f"{line}\n")


def _in_sessions(pairs: Pairs) -> Transcript | None:
    values = dict(pairs)
    numbers = sorted({int(match[1]) for key, value in pairs if value and (match := _SESSION.fullmatch(key))})
    names = [f"session_{number}" for number in numbers]
    sessions = []
    for number, name in zip(numbers, names, strict=True):
        turns = _turns(values.get(name))
        if turns is None:
            return None
        sessions.append(Session(f"session {number}", _line(values.get(f"{name}_date_time")), turns))
    if not sessions:
        return None
    told = {*names, *(f"{name}_date_time" for name in names)}
    return Transcript(sessions, _title(pairs), _without(pairs, told))


def _in_object(pairs: Pairs) -> Transcript | None:
    found = [(key, turns) for key, value in pairs if key.lower() in _LISTS and (turns := _turns(value))]
    if len(found) != 1:
        return None
    [(key, turns)] = found
    return Transcript([Session("", "", turns)], _title(pairs), _without(pairs, {key}))


def _turns(value: Any) -> list[Turn] | None:
    """All elements of a list as turns; None if one of them is none, or there are none."""
    if isinstance(value, Pairs) or not isinstance(value, list) or not value:
        return None
    turns = []
    for element in value:
        turn = _turn(element)
        if turn is None:
            return None
        turns.append(turn)
    return turns


def _turn(element: Any) -> Turn | None:
    if not isinstance(element, Pairs):
        return None
    values = {key.lower(): value for key, value in element}
    role_key = next((key for key in ("role", "from") if _line(values.get(key)).lower() in _ROLES), None)
    speaker_key = next((key for key in _SPEAKERS if _line(values.get(key))), None)
    if role_key and not speaker_key and _line(values.get("name")):
        speaker_key = "name"
    words_key = next((key for key in _WORDS if key in values), None)
    if (role_key is None and speaker_key is None) or words_key is None:
        return None
    words = _words(values[words_key])
    if words is None:
        return None
    time_key = next((key for key in _TIMES if _line(values.get(key))), None)
    role, speaker = _line(values.get(role_key or "")), _line(values.get(speaker_key or ""))
    who = f"{speaker} ({role})" if role and speaker else role or speaker
    told = {role_key, speaker_key, words_key, time_key}
    more = [line for key, inner in element if key.lower() not in told for line in _in_words(key, inner)]
    return Turn(who, _line(values.get(time_key or "")), words, tuple(more))


def _words(value: Any) -> str | None:
    """What was said, also where it is in parts; None if a value is nothing that can be said."""
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, Pairs) or not isinstance(value, list):
        return None
    parts = [dict(part).get("text") if isinstance(part, Pairs) else part for part in value]
    return "\n".join(part for part in parts if isinstance(part, str)).strip()


def _in_words(key: str, value: Any) -> Iterator[str]:
    """The lines of a value that read as words: no ids, numbers and addresses, which are nothing to search for."""
    for line in lines_of(key, value):
        said = line.partition(": ")[2].strip()
        if " " in said and "://" not in said:
            yield line


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _title(pairs: Pairs) -> str:
    values = {key.lower(): value for key, value in pairs}
    return next((title for key in _TITLES if (title := _line(values.get(key)))), "")


def _speakers(transcript: Transcript) -> str:
    """Their names, unless these are roles or too many."""
    names = list(dict.fromkeys(turn.speaker for session in transcript.sessions for turn in session.turns))
    if len(names) > _MOST_IN_TITLE or any(name.lower() in _ROLES for name in names):
        return ""
    return " and ".join(names)


def _without(pairs: Pairs, keys: set[str]) -> Pairs:
    return Pairs(pair for pair in pairs if pair[0] not in keys)
