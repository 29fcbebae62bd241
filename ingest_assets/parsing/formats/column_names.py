"""Which row of a sheet names its columns: the words that every row below is told with.

A wrong name is worse than none. The first row of a sheet names its columns if it looks like it. Anywhere else, below
a caption or behind an empty row, a record may look like it too, and numbers below are asked for.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest

_FEW = 2
_YEAR = re.compile(r"(?:19|20)\d\d")

Row = Sequence[str]


class ColumnNames:
    """The names of a sheet's columns, as its rows come by."""

    def __init__(self) -> None:
        self._names: Row | None = None
        self._above: Row = ()  # a row of a header that has another one below it
        self._is_top = True  # no row has come
        self._begins = True  # no row of several cells has come, since the top or an empty row
        self._is_below_names = False

    def leave_gap(self) -> None:
        """An empty row comes by: another table may begin, unless this one has only just begun."""
        self._begins = self._begins or not self._is_below_names

    def of(self, values: Row, following: Sequence[Row]) -> Row | None:
        """The names for a row's values; None: it has none, or holds the names itself.

        Args:
            values: the row, not empty.
            following: the two rows below it.
        """
        names = self._names
        if not self._begins:
            self._is_below_names = False
            return names
        is_caption = sum(map(bool, values)) == 1
        is_bare = is_caption or self._names_columns(values, following)
        self._is_top = False
        return None if is_bare else names

    def _names_columns(self, values: Row, following: Sequence[Row]) -> bool:
        """Whether this first row of several cells names columns; then its names hold from now on."""
        below, *others = following
        if _is_header(values, below) and _reaches_over(values, below) and _are_numbers_below(below, others):
            self._above = values
            return True
        above, self._above = self._above, ()
        self._begins = False
        is_sure = self._is_top or bool(above) or _are_numbers_below(values, following)
        if not (_is_header(values, below) and is_sure):
            return False
        self._is_below_names = True
        held = _columns(self._names or ())
        if held and _columns(values) <= held and values != self._names:
            self._names = None  # another table, or a record of this one: nobody can tell
        else:
            self._names = [name or over for name, over in zip_longest(values, above, fillvalue="")]
        return True


def _is_header(values: Row, below: Row) -> bool:
    """Several different words, no numbers but years over what are none, most columns named."""
    named = [value for value in values if value]
    if len(named) < _FEW or len(named) < len(values) / 2 or len(set(named)) < len(named):
        return False
    numbers = [column for column, value in enumerate(values) if is_number(value)]
    return not numbers or (len(numbers) < len(named) and _are_years_over(numbers, values, below))


def _are_years_over(columns: Sequence[int], values: Row, below: Row) -> bool:
    """Whether these columns have years that follow each other in either direction, and other numbers below them."""
    years = [values[column] for column in columns]
    if len(years) < _FEW or not all(map(_YEAR.fullmatch, years)) or years not in (sorted(years), sorted(years)[::-1]):
        return False
    return any(
        is_number(below[column]) and not _YEAR.fullmatch(below[column]) for column in columns if column < len(below)
    )


def _reaches_over(values: Row, below: Row) -> bool:
    """Whether the row below, a header without a name for its first column, names columns that this one does not."""
    if not _is_header(below, ()) or below[0]:
        return False
    return any(under and not value for value, under in zip_longest(values[1:], below[1:], fillvalue=""))


def _are_numbers_below(values: Row, following: Sequence[Row]) -> bool:
    """Whether a column has words here and a number in each of the next rows, and the words are none of a form."""
    if any(value.endswith(":") for value in values):
        return False
    return any(
        value and not is_number(value) and all(map(is_number, below))
        for value, *below in zip(values, *following, strict=False)
    )


def _columns(values: Row) -> set[int]:
    return {column for column, value in enumerate(values) if value}


def is_number(value: str) -> bool:
    """Whether a cell shows a number, an amount or a share."""
    return value.lstrip("+-$€£(").replace(",", "").replace(".", "").replace("%", "").rstrip(") ").isdigit()
