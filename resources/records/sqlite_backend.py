"""Records in one SQLite file: one machine, many processes. The default."""

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path

from resources.records import sqlite_queries as sql
from resources.records.backend import BackendCorruptError, BackendError, BackendUnavailableError, RecordBackend
from resources.records.microseconds import from_micros, to_micros
from resources.records.record import DueKey, OpenKey, Record, Stamp, Write
from resources.sqlite_file import NewerFormatError, SqliteFile

_BEFORE_EVERYTHING = -(1 << 63)
# Room for what claiming a thousand documents among many reads and writes: in SQLite's usual 2 MB it reads each page
# twice, and takes a tenth longer (measured).
_CACHE_KIB = 16_384
_ROWS_A_STATEMENT = 100  # measured: 6 us a row, and 8 us one by one; more gain nothing


class SqliteBackend(RecordBackend):
    """One file in WAL mode; every call that writes is one BEGIN IMMEDIATE transaction.

    Calls block for the few milliseconds SQLite needs. Each thread has a connection of its own, so a heartbeat in
    another thread never waits for a long write of this one except on the file's own lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uri = f"sqlite:///{path}"
        self._file = SqliteFile(path, sql.MIGRATIONS, synchronous="FULL", cache_kib=_CACHE_KIB)

    async def create(self, *, shards: int | None = None) -> None:
        """See RecordBackend; reading does not make the file."""
        await super().create(shards=shards)
        with self._errors(), self._file.transaction():
            pass

    async def _read(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        with self._errors():
            rows = self._file.reading.execute(sql.READ_MANY, (kind, json.dumps(list(keys)))).fetchall()
        return {row[0]: _record(row) for row in rows}

    async def _write(self, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]:
        with self._errors(), self._file.transaction() as connection:
            return _write_all(connection, kind, writes)

    async def _list(self, kind: str, after: str, limit: int, labels: Collection[str] | None) -> list[Record]:
        with self._errors():
            if labels is None:
                rows = self._file.reading.execute(sql.LIST_PAGE, (kind, after, limit)).fetchall()
            else:
                wanted = json.dumps(list(labels))
                rows = self._file.reading.execute(sql.LIST_PAGE_BY_LABEL, (kind, after, wanted, limit)).fetchall()
        return [_record(row) for row in rows]

    async def _list_keys(self, kind: str, labels: Collection[str]) -> list[str]:
        keys: list[str] = []
        with self._errors():
            for label in labels:
                keys.extend(row[0] for row in self._file.reading.execute(sql.LIST_KEYS, (kind, label)))
        keys.sort()
        return keys

    async def _list_open(self, kind: str) -> list[OpenKey]:
        with self._errors():
            connection = self._file.reading
            rows = connection.execute(sql.LIST_OPEN, (kind,)).fetchall()
            # Read after them, so that each of theirs is among these.
            labels: dict[int, str] = dict(connection.execute(sql.LABELS).fetchall())
        return [OpenKey(key, labels[label]) for key, label in rows]

    async def _list_due(self, kind: str, now: datetime, limit: int | None, after: DueKey | None) -> list[DueKey]:
        start = (to_micros(after.due_at), after.key) if after else (_BEFORE_EVERYTHING, "")
        most = sql.NO_LIMIT if limit is None else limit
        with self._errors():
            rows = self._file.reading.execute(sql.LIST_DUE, (kind, to_micros(now), *start, most)).fetchall()
        return [DueKey(from_micros(due), key) for due, key in rows]

    async def _list_kinds(self) -> list[str]:
        with self._errors():
            return [row[0] for row in self._file.reading.execute(sql.LIST_KINDS)]

    async def _count_labels(self, kind: str) -> dict[str, int]:
        with self._errors():
            return dict(self._file.reading.execute(sql.COUNT_LABELS, (kind,)).fetchall())

    async def close(self) -> None:
        """Close every thread's connection."""
        self._file.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise BackendUnavailableError(self.uri, f"{error}. {_remedy(error)}") from error
        except sqlite3.DatabaseError as error:
            raise BackendCorruptError(self.uri, f"{error}. Restore the file from a backup.") from error
        except NewerFormatError as error:
            raise BackendCorruptError(self.uri, str(error)) from error
        except FileNotFoundError as error:
            raise BackendUnavailableError(
                self.uri, f"{error.strerror}. Put it back; or run `ingest run`, which lists and does everything anew."
            ) from error
        except OSError as error:
            raise BackendError(self.uri, f"cannot open it: {error.strerror}.") from error


def _remedy(error: sqlite3.OperationalError) -> str:
    """What to do about a file that cannot be used now."""
    primary = error.sqlite_errorcode & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "Another process may hold it; try again."
    if primary == sqlite3.SQLITE_FULL:
        return "Make room and run it again: nothing was lost."
    return "Check its folder, permissions and disk; then try again."


def _label_ids(connection: sqlite3.Connection, labels: set[str]) -> dict[str, int]:
    """The numbers of labels; those that have none get one."""
    connection.executemany(sql.ADD_LABEL, [(label,) for label in labels])
    return dict(connection.execute(sql.LABEL_IDS, (json.dumps(list(labels)),)).fetchall())


def _write_all(connection: sqlite3.Connection, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]:
    """For each write whether its condition held.

    Creations go together, and so do changes, and it is counted how many were done. Only where that is not all of them,
    which is rare, it is looked up which.
    """
    labels = _label_ids(connection, {write.label for write, _ in writes if write.value is not None})
    created, changed, removed = [], [], set()
    for write, stamp in writes:
        seen = write.expected
        if write.value is None:
            if seen is not None and _remove(connection, kind, write.key, seen):
                removed.add(write.key)
            continue
        due = to_micros(write.due_at) if write.due_at else None
        new = (write.value, stamp.version, stamp.write_id, due, labels[write.label], int(write.open))
        if seen is None:
            created.append((kind, write.key, *new))
        else:
            changed.append((*new, kind, write.key, seen.version, seen.write_id))
    n_done = _create(connection, created)
    n_done += connection.executemany(sql.UPDATE, changed).rowcount if changed else 0
    if len(removed) + n_done == len(writes):
        return [True] * len(writes)
    # No stamp is given twice, so whoever carries ours was written just now.
    keys = json.dumps([write.key for write, _ in writes if write.value is not None])
    stored = {key: Stamp(*stamp) for key, *stamp in connection.execute(sql.READ_STAMPS, (kind, keys))}
    return [write.key in removed or stored.get(write.key) == stamp for write, stamp in writes]


def _create(connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> int:
    """Insert rows, but those whose key is taken; how many were inserted."""
    rest = len(rows) % _ROWS_A_STATEMENT
    n_created = connection.executemany(sql.create(1), rows[:rest]).rowcount if rest else 0
    for first in range(rest, len(rows), _ROWS_A_STATEMENT):
        together = rows[first : first + _ROWS_A_STATEMENT]
        n_created += connection.execute(sql.create(len(together)), list(chain.from_iterable(together))).rowcount
    return n_created


def _remove(connection: sqlite3.Connection, kind: str, key: str, seen: Stamp) -> bool:
    return connection.execute(sql.REMOVE, (kind, key, seen.version, seen.write_id)).rowcount == 1


def _record(row: tuple[str, bytes, int, str, int | None, str, int]) -> Record:
    key, value, version, write_id, due_at, label, is_open = row
    due = None if due_at is None else from_micros(due_at)
    return Record(key, value, Stamp(version, write_id), due, label, bool(is_open))
