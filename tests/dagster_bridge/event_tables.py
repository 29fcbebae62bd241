"""What the event log's tables hold, read around the storage, so that it is not checked by itself."""

import sqlite3
from pathlib import Path

import sqlalchemy as db
from dagster._core.storage.event_log import SqlEventLogStorage

TABLES = {
    "event_logs": "id, run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition",
    "asset_keys": "asset_key, last_materialization, last_run_id, asset_details, wipe_timestamp, "
    "last_materialization_timestamp, tags, cached_status_data",
    "asset_event_tags": "event_id, asset_key, key, value, event_timestamp",
}


def rows(path: Path) -> dict[str, list[tuple]]:
    """Of a SQLite database."""
    connection = sqlite3.connect(path)
    try:
        return {table: connection.execute(f"SELECT {TABLES[table]} FROM {table}").fetchall() for table in TABLES}
    finally:
        connection.close()


def rows_on_postgres(storage: SqlEventLogStorage) -> dict[str, list]:
    """Of a PostgreSQL database, sorted."""
    with storage.index_connection() as connection:
        return {
            table: connection.execute(db.text(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3")).all()
            for table, columns in TABLES.items()
        }


def empty(storage: SqlEventLogStorage) -> None:
    """Empty the tables of a PostgreSQL database; ids begin at 1 again."""
    with storage.index_connection() as connection:
        connection.execute(db.text(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY"))
