"""The read model inside a SQLite state's own file: never a moment older than the state."""

from pathlib import Path

from ingest_assets.api.read_model import queries as sql
from ingest_assets.api.read_model.document_index import DocumentIndex
from resources.records.sqlite_queries import MIGRATIONS
from resources.sqlite_file import SqliteFile


def open_in_state_file(path: Path) -> DocumentIndex:
    """The index of a state file; made, or made anew, if it is not there as this version makes it.

    What a state file's later format does to its records may take the triggers away: then all is made again.
    """
    file = SqliteFile(path, MIGRATIONS, synchronous="NORMAL")
    if not _is_kept_up(file):
        with file.transaction() as connection:
            if not _is_kept_up(file):
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
    return DocumentIndex(file)


def _is_kept_up(file: SqliteFile) -> bool:
    found = dict(file.connection.execute(sql.STATEMENTS_OF_TRIGGERS).fetchall())
    return all(found.get(name) == statement.strip() for name, statement in sql.TRIGGERS.items())
