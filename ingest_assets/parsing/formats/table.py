"""Rows of a table as lines that can be understood alone: `header: value; header: value`."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, zip_longest

from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Text
from resources.document_state.reasons import Reason

_FEW = 2
_YEAR = re.compile(r"(?:19|20)\d\d")


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
    """Write numbered rows, and repeat in every row the words of the header above it.

    The first row of several cells is one if it looks like it; captions above it have one cell, and a header in several
    rows is its last. Behind an empty row another table may begin, or the same one go on: its first row is a header if
    there are numbers below it as well.
    """
    header: Sequence[str] | None = None
    is_first = True
    begins = True  # since the last empty row, or the start, no row had several cells
    for (number, cells), (_, following) in pairwise(chain(rows, [(0, ())])):
        budget.spend(sum(1 for cell in cells if cell))
        values = [" ".join(cell.split()) for cell in cells]
        n_values = sum(map(bool, values))
        if not n_values:
            begins = True
            continue
        names = header
        if begins and n_values == 1:
            names = None
        elif begins and _is_above_header(values, following):
            header = names = None
        elif begins:
            if _is_header(values, following) and (is_first or any(map(_is_number, following))):
                header, names = values, None
            is_first = begins = False
        text.row(number)
        text.add(_line(values, names) + "\n")


def _line(values: Sequence[str], header: Sequence[str] | None) -> str:
    if header is None:
        return " | ".join(value for value in values if value)
    named = []
    for column, value in enumerate(values):
        name = header[column] if column < len(header) else ""
        if value:
            named.append(f"{name.rstrip(':')}: {value}" if name else value)
    return "; ".join(named)


def _is_header(values: Sequence[str], following: Sequence[str]) -> bool:
    """Several different words, no numbers but years over what are none, most columns named."""
    named = [value for value in values if value]
    if len(named) < _FEW or len(named) < len(values) / 2 or len(set(named)) < len(named):
        return False
    numbers = [column for column, value in enumerate(values) if _is_number(value)]
    return not numbers or (len(numbers) < len(named) and _are_years_above(numbers, values, following))


def _are_years_above(columns: Sequence[int], values: Sequence[str], following: Sequence[str]) -> bool:
    """Whether these columns have years that follow each other in either direction, and other numbers below them."""
    years = [values[column] for column in columns]
    if len(years) < _FEW or not all(map(_YEAR.fullmatch, years)) or years not in (sorted(years), sorted(years)[::-1]):
        return False
    below = [following[column] for column in columns if column < len(following)]
    return any(_is_number(value) and not _YEAR.fullmatch(value.strip()) for value in below)


def _is_above_header(values: Sequence[str], following: Sequence[str]) -> bool:
    """Whether the next row holds words too, and names columns over which words of this one reach."""
    if not _is_header(values, ()) or any(map(_is_number, following)):
        return False
    first = next(column for column, value in enumerate(values) if value)
    return any(below and not value for value, below in zip_longest(values[first:], following[first:], fillvalue=""))


def _is_number(value: str) -> bool:
    return value.strip().lstrip("+-$€£(").replace(",", "").replace(".", "").replace("%", "").rstrip(") ").isdigit()
