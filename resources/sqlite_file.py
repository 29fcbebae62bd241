"""A SQLite file of ours: how it is made, opened by each thread, and written in whole transactions."""

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

PATIENCE_SECONDS = 30.0
PAGE_BYTES = 8192
_PAUSE_SECONDS = 0.01
_PAGES_BETWEEN_CHECKPOINTS = 4_000


class NewerFormatError(Exception):
    """The file was made by a newer version of this program."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(f"{path} has format {found}; this version reads up to {known}. Upgrade ingest-assets.")


class _Opened(NamedTuple):
    """A connection, and the device and inode of the file it reads and writes."""

    connection: sqlite3.Connection
    identity: tuple[int, int]


class SqliteFile:
    """One file in WAL mode, readable by its owner only, with a connection for each thread that uses it.

    What counts is the file that stands at the path. If it is replaced (a backup was put back), each thread goes on with
    the new one; a connection to the old one would read and write what nobody else sees, without an error.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Sequence[str]],
        synchronous: Literal["NORMAL", "FULL"],
        prepare: Callable[[sqlite3.Connection], None] = lambda _: None,
        cache_kib: int = 2_000,
    ) -> None:
        """Nothing is opened before it is used.

        Args:
            path: the file; its folder is made with it.
            migrations: for each format the statements that make it from the one before, the first from nothing; a file
                of a format beyond these is refused.
            synchronous: FULL keeps each commit through a power cut; NORMAL may lose the last ones, never half of one.
            prepare: is given each new connection, to make in the file what else is needed there.
            cache_kib: the most memory for pages, of each connection; SQLite's own measure if it is not given.
        """
        self.path = path
        self._prepare_more = prepare
        self._migrations = migrations
        self._synchronous = synchronous
        self._cache_kib = cache_kib
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._was_there = False

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection.

        Raises:
            NewerFormatError: a newer version made the file.
            FileNotFoundError: it was there, and has been removed since; a new one is not made in its place.
            sqlite3.Error, OSError: it cannot be opened.
        """
        opened: _Opened | None = getattr(self._local, "opened", None)
        if opened is not None and opened.identity != self._identity():
            self._leave(opened)
            opened = None
        if opened is None:
            opened = self._local.opened = self._open()
            self._connections.append(opened.connection)
        return opened.connection

    @property
    def reading(self) -> sqlite3.Connection:
        """A connection to read by. Where there is no file yet it is to an empty one in memory: who reads makes nothing.

        Raises: see `connection`.
        """
        if self._was_there or self._stands_there():
            return self.connection
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self._prepare(connection)
        return connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it is kept, or, after an exception, nothing."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # SQLite ends the transaction by itself where the disk is full.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """All reads see the file as it is at the first one, whoever writes meanwhile."""
        connection = self.connection
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close every thread's connection."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._local = threading.local()

    def _open(self) -> _Opened:
        if not self._was_there:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        # Before it is opened: if it is replaced in between, the next use finds another one, and opens that.
        identity = self._identity()
        connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
            self._prepare_more(connection)
        except BaseException:
            connection.close()
            raise
        self._was_there = True
        return _Opened(connection, identity)

    def _leave(self, opened: _Opened) -> None:
        """Close a connection to a file that stands at the path no more. SQLite then leaves what stands there alone."""
        del self._local.opened
        self._connections.remove(opened.connection)
        opened.connection.close()

    def _stands_there(self) -> bool:
        try:
            self.path.stat()
        except FileNotFoundError:
            return False  # any other fault is one of the place, and to be told
        return True

    def _identity(self) -> tuple[int, int]:
        """Which file stands at the path."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "it was removed while it was in use", str(self.path)) from None
        return found.st_dev, found.st_ino

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Of the pages SQLite makes by itself a document's record fills a third or overflows it (measured: a million
        # records load in half the time). It is a new file's alone to say; an old one keeps the pages it has.
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
        _use_wal(connection)
        connection.execute(f"PRAGMA cache_size=-{self._cache_kib}")
        connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES_BETWEEN_CHECKPOINTS}")
        connection.execute(f"PRAGMA synchronous={self._synchronous}")
        if self._format_of(connection) < len(self._migrations):
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have done it while we waited for the lock.
            for statements in self._migrations[self._format_of(connection) :]:
                for statement in statements:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version={len(self._migrations)}")
            connection.execute("COMMIT")

    def _format_of(self, connection: sqlite3.Connection) -> int:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > len(self._migrations):
            raise NewerFormatError(self.path, found, len(self._migrations))
        return found


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging.

    Where several processes switch a new file at once, SQLite reports it locked without waiting, whatever the timeout
    of the connection is (measured: 8 of 180 openings by 6 processes).
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
