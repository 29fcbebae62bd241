"""Connections: shared by calls, never by processes, and good for nothing after a restart."""

import os

import pytest

from resources.store.pgvector import rows as pgvector_rows
from resources.store.store import StoreUnavailableError
from tests.store.contract import build, search, texts_of


class TestConnections:
    def test_calls_share_a_connection(self, store, raw):
        """One call after another opens one connection."""
        store.write([build("a", ["one"])])
        before = _connections_of_ingest(raw)
        for _ in range(5):
            search(store, "one")
        assert _connections_of_ingest(raw) == before

    def test_old_connections_are_not_trusted(self, store, monkeypatch):
        """A connection that was silent for long is replaced: a firewall may have forgotten it."""
        from resources.store.pgvector import connections as pgvector_connections

        store.write([build("a", ["one"])])
        [idle] = store._database._connections._idle
        monkeypatch.setattr(pgvector_connections, "_KEPT_SECONDS", 0)
        search(store, "one")
        assert idle.connection.closed

    def test_forked_child_has_its_own(self, store):
        """A child leaves its parent's connection alone, and both go on."""
        store.write([build("a", ["one"])])
        child = os.fork()
        if child == 0:
            os._exit(0 if texts_of(store, "a") == ["one"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert texts_of(store, "a") == ["one"]

    def test_restart_between_two_calls(self, server, store):
        """The call after a restart works, although its connection died, and finds what was committed before.

        The server is stopped as by a crash, and its default is not to wait for the disk.
        """
        store.write([build("a", ["one"])])
        server.stop()
        server.start()
        assert texts_of(store, "a") == ["one"]
        assert not store.write([build("a", ["two"], token=2)])[0].fenced

    def test_server_stops_in_the_middle_of_a_write(self, server, store, monkeypatch):
        """It may heal, nothing is changed, and the same call works once the server is back."""
        store.write([build("a", ["one"]), build("b", ["one"])])
        rows = pgvector_rows.entry_rows

        def stop_first(entries):
            server.stop()
            return rows(entries)

        with monkeypatch.context() as patch:
            patch.setattr(pgvector_rows, "entry_rows", stop_first)
            with pytest.raises(StoreUnavailableError, match="'test'"):
                store.write([build("a", ["two"], token=2), build("b", ["two"], token=2)])
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            search(store, "one")
        server.start()
        assert (texts_of(store, "a"), texts_of(store, "b")) == (["one"], ["one"])
        assert [result.n_written for result in store.write([build("a", ["two"], token=2)])] == [1]


def _connections_of_ingest(raw):
    return set(raw("SELECT pid FROM pg_stat_activity WHERE application_name = 'ingest'"))
