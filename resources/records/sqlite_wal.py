"""How a SQLite file of ours is put into WAL mode."""

import sqlite3
import time

_PAUSE_SECONDS = 0.01


def use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch the file to write-ahead logging, trying for up to `patience` seconds.

    Where several processes switch a new file at once, SQLite reports it locked without waiting, whatever the timeout
    of the connection is (measured: 8 of 180 openings by 6 processes).
    """
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
