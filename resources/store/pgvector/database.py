"""Transactions in one PostgreSQL database, as a pgvector store needs them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from resources.store.pgvector import queries
from resources.store.pgvector.address import Address, PgvectorConfig, address_of
from resources.store.pgvector.connections import Connections
from resources.store.pgvector.errors import domain_error
from resources.store.pgvector.tables import Tables

# The statement timeout is for each COPY, so a COPY is bounded.
_ROWS_A_COPY = 5_000


class Session:
    """A connection inside a transaction."""

    def __init__(self, connection: psycopg.Connection, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables

    def rows(self, query: LiteralString, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Send one query with bound values and take all its rows."""
        cursor = self._connection.execute(self._tables.fill(query), parameters)
        return cursor.fetchall() if cursor.description else []

    def each(self, query: LiteralString, parameters: Sequence[Sequence[Any]]) -> None:
        """Send one statement for each row of values, without waiting in between."""
        with self._connection.cursor() as cursor:
            cursor.executemany(self._tables.fill(query), parameters)

    def copy(self, query: LiteralString, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into a table."""
        remaining = iter(rows)
        while batch := list(islice(remaining, _ROWS_A_COPY)):
            with self._connection.cursor() as cursor, cursor.copy(self._tables.fill(query)) as copy:
                copy.set_types(types)
                for row in batch:
                    copy.write_row(row)


class PgvectorDatabase:
    """Opens transactions. After an exception or a crash nothing of one is kept."""

    def __init__(self, store: str, config: PgvectorConfig, tables: Tables) -> None:
        self.store = store
        self._config = config
        self._tables = tables
        self._connections = Connections(self.address)

    def address(self) -> Address:
        """Where the database is now."""
        return address_of(self.store, self._config)

    @contextmanager
    def reading(self) -> Iterator[Session | None]:
        """A view of the store at one moment, or None if it has no tables yet."""
        with self._transaction(queries.BEGIN_READING, queries.HOLD_TABLES, queries.FIND_EXTENSION) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session | None]:
        """One transaction: all of it is kept, or nothing. None if the store has no tables yet.

        If the connection breaks while the end is being committed, which of the two cannot be known; writing the same
        again is right in both cases.
        """
        with self._transaction(
            queries.BEGIN_WRITING, queries.HOLD_TABLES, queries.FIND_EXTENSION, queries.SET_DURABLE
        ) as session:
            yield session

    @contextmanager
    def preparing(self) -> Iterator[Session]:
        """A transaction for making and dropping tables, the only one of its kind in the database."""
        with self._transaction(queries.BEGIN_WRITING, queries.HOLD_DATABASE, queries.SET_DURABLE) as session:
            assert session is not None  # it asks for no table
            yield session

    @contextmanager
    def _transaction(self, *begin: LiteralString) -> Iterator[Session | None]:
        with self._domain_errors():
            connection = self._begun(begin)
            if connection is None:
                yield None
                return
            try:
                yield Session(connection, self._tables)
                connection.execute("COMMIT")
            except BaseException:
                # The server rolls back what was not committed.
                connection.close()
                raise
            self._connections.keep(connection)

    def _begun(self, begin: Sequence[LiteralString]) -> psycopg.Connection | None:
        try:
            return self._connections.begin(self._statements(begin))
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return None

    def _statements(self, begin: Sequence[LiteralString]) -> sql.Composed:
        timeouts = sql.SQL(queries.SET_TIMEOUTS).format(
            statement_timeout=sql.Literal(f"{self._config.statement_timeout * 1000:.0f}ms"),
            lock_timeout=sql.Literal(f"{self._config.lock_timeout * 1000:.0f}ms"),
        )
        first, *others = (self._tables.fill(statement) for statement in begin)
        return sql.SQL(";").join([first, timeouts, *others])

    @contextmanager
    def _domain_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            address = self.address()
            cause = None if address.holds_secret(str(error)) else error
            raise domain_error(self.store, address, error) from cause
