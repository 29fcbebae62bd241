"""JSON Lines: a value a line, each line a row."""

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
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = load(line)
        except ValueError as error:
            raise Refused(Reason.MALFORMED, f"Line {number:,} is not JSON: {error}.") from error
        text.row(number)
        write_value("", value, text)
        text.add("\n")
