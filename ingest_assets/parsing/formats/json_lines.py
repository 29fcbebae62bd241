"""JSON Lines: a value a line, each line a row; or a conversation, each line a turn."""

from typing import Any

from ingest_assets.parsing.formats.conversation import transcript_of, write
from ingest_assets.parsing.formats.json_values import load, write_value
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason


def read(source: Source, text: Text) -> None:
    """Write every line's values.

    Raises:
        Refused: `malformed`, naming the line, when a line is not JSON; `too_deep`.
    """
    text.markdown = False
    values = _decoded(source.text)
    if transcript := transcript_of(list(values.values())):
        write(transcript, source, text)
        return
    for number, value in values.items():
        text.row(number)
        write_value("", value, text)
        text.add("\n")


def _decoded(content: str) -> dict[int, Any]:
    """The values of the lines that are not blank, by number of the line."""
    values = {}
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values[number] = load(line)
        except ValueError as error:
            raise Refused(Reason.MALFORMED, f"Line {number:,} is not JSON: {error}.") from error
    return values
