"""A JSON document: a conversation as its turns, anything else as its values."""

from typing import Any

from ingest_assets.parsing.formats.conversation import transcript_of, write
from ingest_assets.parsing.formats.json_values import load, write_value
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason


def read(source: Source, text: Text) -> None:
    """Write every value.

    Raises:
        Refused: `malformed`, `too_deep`.
    """
    text.markdown = False
    value = _decoded(source.text)
    if transcript := transcript_of(value):
        write(transcript, source, text)
    else:
        write_value("", value, text)


def _decoded(content: str) -> Any:
    try:
        return load(content)
    except ValueError as error:
        values = _as_lines(content)
        if values is None:
            raise Refused(Reason.MALFORMED, f"It is not JSON: {error}.") from error
        return values


def _as_lines(content: str) -> list[Any] | None:
    """A `.json` that holds a value a line."""
    lines = [line for line in content.splitlines() if line.strip()]
    if len(lines) < 2:  # noqa: PLR2004 - then it was no list of lines
        return None
    try:
        return [load(line) for line in lines]
    except ValueError:
        return None
