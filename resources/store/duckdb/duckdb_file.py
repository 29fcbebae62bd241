"""One DuckDB file that many processes use in turn: lock, open, do, close."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import nanoarrow as na

from resources.file_lock import exclusive_lock, shared_lock
from resources.store.store import StoreCorruptError, StoreUnavailableError

# DuckDB's phrases for a file that is broken rather than out of reach; both come as the same IOException.
_BROKEN_FILE_PHRASES = ("not a valid DuckDB database file", "Could not read enough bytes")
_FULL_DISK_PHRASE = "Could not write file"  # in a commit that cannot write it is within a fatal error
_TRANSIENT = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.ConnectionException, duckdb.InterruptException)


class Session:
    """A connection inside a transaction, while the file is locked."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Send one query with bound values and take all its rows."""
        answer: list[tuple[Any, ...]] = self._connection.execute(query, parameters).fetchall()
        return answer

    def with_table(self, query: str, name: str, table: na.Array) -> None:
        """Send one query that reads the Arrow table `name`."""
        self._connection.register(name, table)
        self.rows(query)
        self._connection.unregister(name)


class DuckDBFile:
    """A database file beside its lock. Every call opens and closes it, so that no process keeps others out."""

    def __init__(
        self, store: str, path: Path, create: Callable[[Session], None], *, lock_timeout: float, memory_limit: str
    ) -> None:
        self.store = store
        self.path = path
        self._create_tables = create
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._lock_timeout = lock_timeout
        self._memory_limit = memory_limit

    @contextmanager
    def reading(self) -> Iterator[Session | None]:
        """A view of the file as its last whole transaction left it, or None if there is no file yet."""
        with self._domain_errors():
            if not self.path.exists():
                yield None
                return
            with shared_lock(self._lock_path, self._lock_timeout):
                if not self.path.exists():
                    yield None
                    return
                with self._connected(self.path, read_only=True) as session:
                    yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction: all of it is kept, or, after an exception or a crash, nothing."""
        with self._domain_errors():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with exclusive_lock(self._lock_path, self._lock_timeout):
                if not self.path.exists():
                    self._create()
                with self._connected(self.path) as session:
                    yield session

    def delete(self) -> None:
        """Remove the database. The lock's file stays: another process may be about to take it."""
        with self._domain_errors():
            if not self.path.parent.exists():
                return
            with exclusive_lock(self._lock_path, self._lock_timeout):
                _unlink_database(self.path)

    def _create(self) -> None:
        """Make the file under another name and move it in place whole, so that a crash never leaves half of one."""
        new = self.path.with_name(f"{self.path.name}.new")
        _unlink_database(new)
        _unlink_database(self.path)  # a log whose database is gone would be played into this one
        with self._connected(new) as session:
            self._create_tables(session)
        # On a full disk a commit stands in the log alone, and closing says nothing of it: what is moved would be empty.
        if _log_of(new).exists():
            raise StoreUnavailableError(self.store, f"{self.path} cannot be made: its disk may be full.")
        new.chmod(0o600)
        new.replace(self.path)

    @contextmanager
    def _connected(self, path: Path, *, read_only: bool = False) -> Iterator[Session]:
        connection = duckdb.connect(str(path), read_only=read_only, config=self._options())
        try:
            connection.execute("BEGIN").fetchall()
            yield Session(connection)
            connection.execute("COMMIT").fetchall()
        finally:
            # Closing without COMMIT rolls back.
            connection.close()

    def _options(self) -> dict[str, str | bool | int | float | list[str]]:
        """What a connection may do: read and write its own file, with bounded memory, and nothing else."""
        return {
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "threads": "2",
            "memory_limit": self._memory_limit,
            # A commit goes into the database at once instead of into a log first and the database later. Measured
            # for 27,000 chunks in ten commits: 0.94 s against 1.05 s.
            "checkpoint_threshold": "1KB",
            "lock_configuration": "true",
        }

    @contextmanager
    def _domain_errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise self._domain_error(error) from error
        except TimeoutError as error:
            raise StoreUnavailableError(
                self.store,
                f"still locked after {self._lock_timeout:g} s by another process writing to or reading {self.path}. "
                "Try again, or raise the store's lock_timeout.",
            ) from error
        except OSError as error:
            raise StoreUnavailableError(self.store, f"its file cannot be reached: {error}") from error

    def _domain_error(self, error: duckdb.Error) -> StoreUnavailableError | StoreCorruptError:
        is_broken = any(phrase in str(error) for phrase in _BROKEN_FILE_PHRASES)
        is_transient = isinstance(error, _TRANSIENT) or _FULL_DISK_PHRASE in str(error)
        if is_transient and not is_broken:
            return StoreUnavailableError(self.store, f"DuckDB could not use {self.path}: {error}")
        return StoreCorruptError(
            self.store,
            f"{self.path} is not a readable store of this program: {error}. "
            "Restore the file from a backup, or drop the store and build it again.",
        )


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def _unlink_database(path: Path) -> None:
    for file in (path, _log_of(path)):
        file.unlink(missing_ok=True)
