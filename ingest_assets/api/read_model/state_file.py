"""The read model inside a SQLite state's own file: never a moment older than the state."""

import sqlite3
from pathlib import Path

from ingest_assets.api.read_model import queries as sql
from ingest_assets.api.read_model.document_index import DocumentIndex
from resources.records.sqlite_queries import MIGRATIONS
from resources.sqlite_file import SqliteFile


def open_in_state_file(path: Path) -> DocumentIndex:
    """The index of a state file; made, or made anew, if it is not there as this version makes it.

    So it is in each file that is put in its place while it is open: a backup may be of before there was an index.
    """
    file = SqliteFile(path, MIGRATIONS, synchronous="NORMAL", prepare=_keep_up)
    _ = file.connection  # made now, not while somebody waits for a page
    return DocumentIndex(file)


def _keep_up(connection: sqlite3.Connection) -> None:
    """Have the file keep up the index by itself.

    What a state file's later format does to its records may take the triggers away: then all is made again.
    """
    if _is_kept_up(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    # Another thread may have done it while we waited for the lock.
    if not _is_kept_up(connection):
        for statement in [
            *(f"DROP TRIGGER IF EXISTS {name}" for name in sql.TRIGGERS),
            *sql.DROP,
            sql.TABLE,
            sql.INDEX,
            sql.FILL,
            sql.PUSHES,
            sql.FILL_PUSHES,
            *sql.TRIGGERS.values(),
        ]:
            connection.execute(statement)
    connection.execute("COMMIT")


def _is_kept_up(connection: sqlite3.Connection) -> bool:
    found = dict(connection.execute(sql.STATEMENTS_OF_TRIGGERS).fetchall())
    return all(found.get(name) == statement.strip() for name, statement in sql.TRIGGERS.items())
