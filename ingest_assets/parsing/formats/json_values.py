"""JSON as lines `path: value`, and turns of a conversation as `path speaker: words`."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ingest_assets.parsing.clean import clean
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Text
from resources.document_state.reasons import Reason

_SPEAKERS = ("speaker", "role", "author", "sender", "from", "name")
_WORDS = ("text", "content", "message", "value", "body")
_DEEPEST = 200


class Pairs(list[tuple[str, Any]]):
    """An object as its pairs, so that a key written twice is shown twice."""


def load(text: str) -> Any:
    """Decode JSON; numbers stay the digits they are.

    Raises:
        ValueError: It is not JSON.
        Refused: `too_deep`.
    """
    try:
        return json.loads(
            text.lstrip("\ufeff"), parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=Pairs
        )
    except RecursionError as error:
        raise Refused(Reason.TOO_DEEP, "Its values are nested too deeply.") from error


def write_value(path: str, value: Any, text: Text) -> None:
    """Write one value, whatever it is, as lines."""
    for line in lines_of(path, value):
        text.add(line)
        text.add("\n")


def lines_of(path: str, value: Any) -> Iterator[str]:
    """The lines of one value, whatever it is.

    Raises:
        Refused: `too_deep`.
    """
    return _lines(path, value, 0)


def _lines(path: str, value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise Refused(Reason.TOO_DEEP, f"Its values are nested more than {_DEEPEST} deep.")
    if isinstance(value, Pairs):
        told = _told(value)
        if told is not None:
            speaker, words = told
            yield f"{path} {value[speaker][1]}: {value[words][1]}".strip()
            value = Pairs(pair for number, pair in enumerate(value) if number not in told)
        for key, inner in value:
            yield from _lines(f"{path}.{key}" if path else key, inner, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield from _lines(f"{path}[{number}]", inner, depth + 1)
    elif value is not None and not _is_blank(value):
        yield f"{path}: {_shown(value)}" if path else _shown(value)


def _is_blank(value: Any) -> bool:
    """Whether nothing of a value is left once it is cleaned."""
    if not isinstance(value, str) or (value and value.isprintable()):
        return False
    return not clean(value, Counter()).strip()


def _told(pairs: Pairs) -> tuple[int, int] | None:
    """Where in an object the speaker and the words stand, if it is a turn of a conversation."""
    keys = [key.lower() for key, value in pairs if isinstance(value, str)]
    speaker = next((key for key in _SPEAKERS if key in keys), None)
    words = next((key for key in _WORDS if key in keys), None)
    if speaker is None or words is None:
        return None
    all_keys = [key.lower() if isinstance(value, str) else "" for key, value in pairs]
    return all_keys.index(speaker), all_keys.index(words)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
