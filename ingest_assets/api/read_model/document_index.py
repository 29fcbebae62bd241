"""Documents by organisation, label and name: a page of ids at a time, or counted."""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

from ingest_assets.api.read_model import queries as sql
from resources.document_state.label import DocumentLabel, readable_label
from resources.sqlite_file import SqliteFile

_ESCAPED = "\\"  # as the queries say

LabelFilter = Callable[[DocumentLabel], bool]


# A file has a few dozen. Numbers mean other labels in another file, so it is texts that are remembered.
_label_of = lru_cache(maxsize=4096)(readable_label)


class IndexUnavailableError(Exception):
    """The file of the index cannot be used now."""


class DocumentIndex:
    """Answers from one SQLite file. Blocks for a few milliseconds for each 10,000 documents; safe for threads."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def as_of(self) -> datetime | None:
        """Up to which time changes are in it; None: it is the state itself, so all are."""
        return None

    def page(self, org_id: str, where: LabelFilter, text: str, after: str, limit: int) -> list[str]:
        """Ids behind `after`, ascending, of documents whose label passes and whose name has `text` in it.

        Ids never change, so who goes on behind the last one he saw misses none that was there all the time, and sees
        none twice.
        """
        patterns = _patterns(text)
        with self._snapshot() as connection:
            labels = _labels_in(connection, where)
            chosen = {**_chosen(org_id, labels, patterns), "after": after, "limit": limit}
            return [key for (key,) in connection.execute(sql.page(len(patterns)), chosen)]

    def counts(self, org_id: str, where: LabelFilter, text: str = "") -> dict[DocumentLabel, int]:
        """How many documents carry each label that passes."""
        patterns = _patterns(text)
        with self._snapshot() as connection:
            labels = _labels_in(connection, where)
            rows = connection.execute(sql.count(len(patterns)), _chosen(org_id, labels, patterns)).fetchall()
        return {labels[number]: n for number, n in rows}

    def last_pushes(self, org_id: str) -> dict[str, datetime]:
        """When a document of an organisation was last written into each store, by slug, whatever became of it since."""
        with self._snapshot() as connection:
            rows = connection.execute(sql.LAST_PUSHES, (org_id,)).fetchall()
        return {store: datetime.fromisoformat(pushed_at) for store, pushed_at in rows}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Labels and documents of one moment: a document that has changed to a new label would be in neither."""
        try:
            with self._file.snapshot() as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise IndexUnavailableError(f"{self._file.path}: {error}") from error


def _labels_in(connection: sqlite3.Connection, where: LabelFilter) -> dict[int, DocumentLabel]:
    """The labels of documents that pass, by their number in the file. The file has those of other records too."""
    found = {number: _label_of(label) for number, label in connection.execute(sql.LABELS)}
    return {number: label for number, label in found.items() if label is not None and where(label)}


def _chosen(org_id: str, labels: dict[int, DocumentLabel], patterns: Sequence[str]) -> dict[str, object]:
    """What a query takes."""
    named = {f"pattern{number}": pattern for number, pattern in enumerate(patterns)}
    return {"org_id": org_id, "labels": json.dumps(list(labels)), **named}


def _patterns(text: str) -> list[str]:
    """What an encoded name is like that has this text in it; [] for no text.

    SQLite ignores the case of ASCII letters; of others, the ways they are likely to be written are tried.
    """
    if not text:
        return []
    ways = [text] if text.isascii() else [text, text.lower(), text.upper(), text.title()]
    encoded = dict.fromkeys(quote(way, errors="surrogatepass") for way in ways)
    return [f"%{way.replace('%', _ESCAPED + '%').replace('_', _ESCAPED + '_')}%" for way in encoded]
