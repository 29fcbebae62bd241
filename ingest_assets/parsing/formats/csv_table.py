"""CSV and TSV, in whatever dialect."""

import csv
import io
from collections.abc import Iterator

from ingest_assets.parsing.formats.table import Budget, write_rows
from ingest_assets.parsing.text import Source, Text

_SAMPLE = 16 * 1024


def read(source: Source, text: Text) -> None:
    """Write the rows; a row's number is that of its first line among the rows, the header being 1."""
    text.markdown = False
    content = source.text.replace("\x00", "").removeprefix("\ufeff")
    csv.field_size_limit(max(len(content), 1) + 1)
    write_rows(_rows(content), text, Budget(source.limits.cells))


def _rows(content: str) -> Iterator[tuple[int, list[str]]]:
    delimiter = _delimiter(content[:_SAMPLE])
    yield from enumerate(csv.reader(io.StringIO(content, newline=""), delimiter=delimiter), 1)


def _delimiter(sample: str) -> str:
    """The character that splits most lines into the same number of fields.

    csv.Sniffer guesses letters in text without delimiters and is quadratic in quotes, so it is not asked.
    """
    lines = [line for line in sample.splitlines()[:50] if line.strip()]
    best, score = ",", 0.0
    for delimiter in ",;\t|":
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=lambda count: (counts.count(count), count), default=0)
        agreement = counts.count(usual) / len(lines) if usual else 0
        if agreement > score:
            best, score = delimiter, agreement
    if score:
        return best
    return max(",;\t|", key=sample.count) if sample else ","
