"""Documents by organisation, label and name: a page of ids at a time, or counted."""

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import quote

import msgspec

from ingest_assets.api.read_model import queries as sql
from resources.document_state.label import DocumentLabel, read_label
from resources.sqlite_file import SqliteFile

_ESCAPED = "\\"  # as the queries say

LabelFilter = Callable[[DocumentLabel], bool]


class DocumentIndex:
    """Answers from one SQLite file. Blocks for a few milliseconds for each 10,000 documents; safe for threads."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._labels: dict[int, DocumentLabel] = {}
        self._newest_label = 0
        self._lock = threading.Lock()

    def as_of(self) -> datetime | None:
        """Up to which time changes are in it; None: it is the state itself, so all are."""
        return None

    def page(self, org_id: str, where: LabelFilter, text: str, after: str, limit: int) -> list[str]:
        """Ids behind `after`, ascending, of documents whose label passes and whose name has `text` in it.

        Ids never change, so who goes on behind the last one he saw misses none that was there all the time, and sees
        none twice.
        """
        patterns = _patterns(text)
        with self._file.snapshot() as connection:
            chosen = {**self._chosen(connection, org_id, where, patterns), "after": after, "limit": limit}
            return [key for (key,) in connection.execute(sql.page(len(patterns)), chosen)]

    def counts(self, org_id: str, where: LabelFilter, text: str = "") -> dict[DocumentLabel, int]:
        """How many documents carry each label that passes."""
        patterns = _patterns(text)
        with self._file.snapshot() as connection:
            chosen = self._chosen(connection, org_id, where, patterns)
            rows = connection.execute(sql.count(len(patterns)), chosen).fetchall()
        return {self._labels[label]: n for label, n in rows}

    def last_pushes(self, org_id: str) -> dict[str, datetime]:
        """When a document of an organisation was last written into each store, by slug, whatever became of it since."""
        rows = self._file.connection.execute(sql.LAST_PUSHES, (org_id,)).fetchall()
        return {store: datetime.fromisoformat(pushed_at) for store, pushed_at in rows}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _chosen(
        self, connection: sqlite3.Connection, org_id: str, where: LabelFilter, patterns: Sequence[str]
    ) -> dict[str, object]:
        """What a query takes. Of one snapshot with it: a document that has changed to a new label would be in none."""
        labels = [number for number, label in self._known_labels(connection).items() if where(label)]
        named = {f"pattern{number}": pattern for number, pattern in enumerate(patterns)}
        return {"org_id": org_id, "labels": json.dumps(labels), **named}

    def _known_labels(self, connection: sqlite3.Connection) -> dict[int, DocumentLabel]:
        with self._lock:
            for number, label in connection.execute(sql.NEW_LABELS, (self._newest_label,)).fetchall():
                self._newest_label = number
                try:
                    self._labels = {**self._labels, number: read_label(label)}
                except msgspec.MsgspecError:
                    continue  # of another kind of record
            return self._labels


def _patterns(text: str) -> list[str]:
    """What an encoded name is like that has this text in it; [] for no text.

    SQLite ignores the case of ASCII letters; of others, the ways they are likely to be written are tried.
    """
    if not text:
        return []
    ways = [text] if text.isascii() else [text, text.lower(), text.upper(), text.title()]
    encoded = dict.fromkeys(quote(way, errors="surrogatepass") for way in ways)
    return [f"%{way.replace('%', _ESCAPED + '%').replace('_', _ESCAPED + '_')}%" for way in encoded]
