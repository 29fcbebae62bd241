"""Connections to one database, kept between calls, so that a search need not begin with a handshake."""

import os
import time
import weakref
from collections.abc import Callable
from typing import NamedTuple

import psycopg
from psycopg import sql

from resources.store.pgvector.address import Address

_KEPT_AT_MOST = 4
# A firewall forgets a silent connection after minutes, and what is sent on it then is waited for in vain.
_KEPT_SECONDS = 60.0


class _Idle(NamedTuple):
    connection: psycopg.Connection
    since: float
    process: int


class Connections:
    """Connections outside any transaction. Safe for threads; a forked child has none of its parent's."""

    def __init__(self, address: Callable[[], Address]) -> None:
        self._address = address
        # Appending to a list and popping from it are atomic.
        self._idle: list[_Idle] = []
        weakref.finalize(self, _close_all, self._idle)

    def begin(self, statements: sql.Composed) -> psycopg.Connection:
        """A connection that has carried out the statements, which open a transaction and change nothing.

        Only for those may a second connection be tried: the server may have been restarted while one was idle.
        """
        while (connection := self._take()) is not None:
            try:
                return _begun(connection, statements)
            except psycopg.OperationalError:
                if not connection.broken:
                    raise
        # Never prepared: a prepared plan forgets that a filter is NULL, and poolers lose prepared statements.
        connection = psycopg.Connection.connect(
            **(self._address().parts | {"client_encoding": "utf8"}),  # type: ignore[arg-type]  # libpq's own names
            autocommit=True,
            prepare_threshold=None,
        )
        return _begun(connection, statements)

    def keep(self, connection: psycopg.Connection) -> None:
        """Take back a connection whose transaction has ended."""
        if len(self._idle) < _KEPT_AT_MOST and not connection.closed:
            self._idle.append(_Idle(connection, time.monotonic(), os.getpid()))
        else:
            connection.close()

    def _take(self) -> psycopg.Connection | None:
        while self._idle:
            try:
                connection, since, process = self._idle.pop()
            except IndexError:
                return None
            # A parent's connection is left alone: closing it here would close it there.
            if process == os.getpid():
                if time.monotonic() - since < _KEPT_SECONDS:
                    return connection
                connection.close()
        return None


def _begun(connection: psycopg.Connection, statements: sql.Composed) -> psycopg.Connection:
    try:
        connection.execute(statements)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_all(idle: list[_Idle]) -> None:
    for connection, _, process in idle:
        if process == os.getpid():
            connection.close()
