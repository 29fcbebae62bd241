"""Rows of a table as lines that can be understood alone: `header: value; header: value`."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from ingest_assets.parsing.formats.column_names import ColumnNames, Row
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Text
from resources.document_state.reasons import Reason

_ROWS_BELOW = 2  # that are looked at to tell what a row is


class Budget:
    """How many more cells a document may have."""

    def __init__(self, cells: int) -> None:
        self._most = cells
        self._left = cells

    def spend(self, cells: int) -> None:
        """Count cells.

        Raises:
            Refused: `too_large`.
        """
        self._left -= cells
        if self._left < 0:
            raise Refused(Reason.TOO_LARGE, f"It has more cells; limits.cells is {self._most:,}.")

    def check_range(self, height: int, width: int) -> None:
        """Refuse a range that could not be written, before it is unfolded.

        Raises:
            Refused: `too_large`.
        """
        if height * width > 20 * self._most:
            raise Refused(
                Reason.TOO_LARGE, f"A sheet is {height:,} rows by {width:,} columns; limits.cells is {self._most:,}."
            )


def write_rows(rows: Iterable[tuple[int, Sequence[str]]], text: Text, budget: Budget) -> None:
    """Write numbered rows, and with each value the name of its column."""
    columns = ColumnNames()
    waiting: deque[tuple[int, list[str]]] = deque()
    for number, cells in chain(rows, [(0, ())] * _ROWS_BELOW):
        budget.spend(sum(1 for cell in cells if cell))
        waiting.append((number, [" ".join(cell.split()) for cell in cells]))
        if len(waiting) > _ROWS_BELOW:
            _write_row(*waiting.popleft(), [values for _, values in waiting], columns, text)


def _write_row(number: int, values: list[str], following: Sequence[Row], columns: ColumnNames, text: Text) -> None:
    if not any(values):
        columns.leave_gap()
        return
    text.row(number)
    text.add(_line(values, columns.of(values, following)) + "\n")


def _line(values: Row, names: Row | None) -> str:
    if names is None:
        return " | ".join(value for value in values if value)
    named = []
    for column, value in enumerate(values):
        name = names[column] if column < len(names) else ""
        if value:
            named.append(f"{name.rstrip(':')}: {value}" if name else value)
    return "; ".join(named)
