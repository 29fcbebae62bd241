"""Rows of a table as lines that can be understood alone: `header: value; header: value`."""

from collections.abc import Iterable, Sequence

from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Text
from resources.document_state.reasons import Reason

_FEW = 2


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
    """Write numbered rows. Where the first of them looks like a header, its words are repeated in every row."""
    header: Sequence[str] | None = None
    first = True
    for number, cells in rows:
        budget.spend(sum(1 for cell in cells if cell))
        values = [" ".join(cell.split()) for cell in cells]
        if not any(values):
            continue
        text.row(number)
        if first:
            first = False
            header = values if _is_header(values) else None
            text.add(" | ".join(value for value in values if value) + "\n")
        else:
            text.add(_line(values, header) + "\n")


def _line(values: Sequence[str], header: Sequence[str] | None) -> str:
    if header is None:
        return " | ".join(value for value in values if value)
    named = []
    for column, value in enumerate(values):
        name = header[column] if column < len(header) else ""
        if value:
            named.append(f"{name.rstrip(':')}: {value}" if name else value)
    return "; ".join(named)


def _is_header(values: Sequence[str]) -> bool:
    """Several different words, no numbers, most columns named."""
    named = [value for value in values if value]
    if len(named) < _FEW or len(named) < len(values) / 2 or len(set(named)) < len(named):
        return False
    return not any(_is_number(value) for value in named)


def _is_number(value: str) -> bool:
    return value.lstrip("+-$€£(").replace(",", "").replace(".", "").replace("%", "").rstrip(") ").isdigit()
