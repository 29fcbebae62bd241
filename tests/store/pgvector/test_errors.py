"""What PostgreSQL refuses, what cannot be reached, and what no message may show."""

import time
import traceback

import psycopg
import pytest

from resources.store.open_store import open_store
from resources.store.store import Removal, StoreConfigError, StoreCorruptError, StoreTooNewError, StoreUnavailableError
from tests.store.contract import build, search, texts_of
from tests.store.pgvector_server import STAMP


class TestErrors:
    def test_newer_format(self, store, raw):
        """Tables of a newer program are left alone, with a clear message."""
        store.write([build("a", ["one"])])
        raw("UPDATE {meta} SET format_version = 99")
        for action in (
            lambda: search(store, "one"),
            lambda: store.write([build("b", ["two"])]),
            lambda: store.remove([Removal("a", 2)]),
            store.held_documents,
        ):
            with pytest.raises(StoreTooNewError, match=r"'test'.*99"):
                action()

    @pytest.mark.parametrize("damage", ["DELETE FROM {meta}", "ALTER TABLE {meta} RENAME dimension TO d"])
    def test_tables_of_something_else(self, store, raw, damage):
        """Tables that are not ours are not taken for a store."""
        store.write([build("a", ["one"])])
        raw(damage)
        for action in (lambda: search(store, "one"), lambda: store.write([build("b", ["two"])])):
            with pytest.raises(StoreCorruptError, match="'test'"):
                action()

    def test_missing_table(self, store, raw):
        """A table that somebody took away is damage, not an empty store."""
        store.write([build("a", ["one"])])
        raw("DROP TABLE {chunks}")
        with pytest.raises(StoreCorruptError, match="test_chunks"):
            search(store, "one")

    def test_locked_for_too_long(self, store, server, schema, raw):
        """Waiting for another writer is bounded; readers do not wait at all."""
        store.write([build("a", ["one"])])
        impatient = server.store(schema, lock_timeout=0.2)
        with psycopg.connect(server.url) as other:
            other.execute(f'SELECT * FROM "{schema}".test_fences FOR UPDATE')
            start = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="lock timeout"):
                impatient.write([build("a", ["two"], token=2)])
            assert time.monotonic() - start < 20
            assert texts_of(impatient, "a") == ["one"]
        assert not impatient.write([build("a", ["two"], token=2)])[0].fenced

    def test_statement_that_takes_too_long(self, server, schema):
        """A statement has an end, and the next call works again."""
        store = server.store(schema, statement_timeout=1)
        with pytest.raises(StoreUnavailableError, match="statement timeout"), store._database.preparing() as session:
            session.rows("SELECT pg_sleep(9)")
        with store._database.preparing() as session:
            assert session.rows("SELECT 1") == [(1,)]

    @pytest.mark.parametrize(
        ("state", "meaning"),
        [
            ("53100", StoreUnavailableError),  # disk full
            ("53300", StoreUnavailableError),  # too many connections
            ("40P01", StoreUnavailableError),  # deadlock
            ("40001", StoreUnavailableError),  # serialization
            ("57P01", StoreUnavailableError),  # shutdown
            ("25006", StoreUnavailableError),  # a standby
            ("08006", StoreUnavailableError),  # connection failure
            ("42501", StoreConfigError),  # permission
            ("58P01", StoreConfigError),  # no such extension, older servers
            ("0A000", StoreConfigError),  # no such extension
            ("3D000", StoreConfigError),  # no such database
            ("28P01", StoreConfigError),  # wrong password
            ("XX001", StoreCorruptError),  # damaged data
            ("42P01", StoreCorruptError),  # no such table
            ("54000", ValueError),  # larger than a limit
            ("22021", ValueError),  # not text
        ],
    )
    def test_what_errors_mean(self, store, state, meaning):
        """Whether trying again can help is a type, from the state PostgreSQL gives and not from its words."""
        with pytest.raises(meaning, match="Store 'test'") as caught, store._database.preparing():
            raise psycopg.errors.lookup(state)("what happened")
        assert type(caught.value) is meaning

    def test_extension_is_not_installed(self, store):
        """The message says what to do on the server."""
        with pytest.raises(StoreConfigError, match="Install pgvector"), store._database.preparing() as session:
            session.rows("CREATE EXTENSION no_such_extension")


class TestAddress:
    def test_unreachable_may_heal(self, server, schema):
        """A server that is not there is waited for, and named."""
        for url in ("postgresql://127.0.0.1:1/db", "postgresql:///db?host=/nowhere"):
            with pytest.raises(StoreUnavailableError, match="database 'db' at "):
                server.store(schema, url=url).held_documents()

    def test_what_only_a_person_can_correct(self, server, schema):
        """A missing database, role or permission is told as such, with what to do."""
        server.rows("CREATE ROLE nothing LOGIN")
        for url, message in (
            (server.url_of("postgres", database="nope"), 'database "nope" does not exist.*Correct'),
            (server.url_of("nobody"), 'role "nobody" does not exist.*Correct'),
            (server.url_of("nothing"), "permission denied.*CREATE SCHEMA"),
        ):
            with pytest.raises(StoreConfigError, match=message):
                server.store(schema, url=url).write([build("a", ["one"])])

    def test_environment_names_the_database(self, server, schema, monkeypatch):
        """Opening looks at nothing; the first call says which variable is missing, and a later one finds it."""
        store = open_store("pgvector", "legal", STAMP, {"dsn_env": "LEGAL_DB", "schema": schema})
        with pytest.raises(StoreConfigError, match=r"'legal'.*LEGAL_DB"):
            store.held_documents()
        monkeypatch.setenv("LEGAL_DB", server.url)
        assert store.held_documents() == []

    def test_missing_driver_is_named(self, monkeypatch):
        """Without the package a kind needs, the message says which one, and how it is had."""
        from resources.plug_ins import PlugIns
        from resources.store import open_store as module

        monkeypatch.setattr(module, "_KINDS", PlugIns(module.GROUP, {"pgvector": "no_such_driver:Store"}))
        with pytest.raises(StoreConfigError, match=r"'no_such_driver'.*ingest-assets\[pgvector\]"):
            open_store("pgvector", "legal", STAMP, {})

    @pytest.mark.parametrize(
        "config", [{"statement_timeout": 0}, {"lock_timeout": -1}, {"schema": 3}, {"index": "hnsw"}]
    )
    def test_wrong_options(self, config):
        """Options are checked when the store is opened."""
        with pytest.raises(StoreConfigError, match="'legal'"):
            open_store("pgvector", "legal", STAMP, config)


class TestSecrets:
    SECRET = "hunter2-is-secret"

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://user:{secret}@host/db",
            "postgresql://user@host/db?password={secret}",
            "host=host password={secret}",
            "postgresql://user:{secret}@host:port/db",
            "{secret} and some words",
            "postgresql://user@host/db?no_such_option={secret}",
        ],
    )
    def test_option_url_holds_none(self, url, caplog):
        """A password in the configuration is refused without being repeated, and so is what cannot be read."""
        with pytest.raises(StoreConfigError, match="'url'") as caught:
            open_store("pgvector", "legal", STAMP, {"url": url.replace("{secret}", self.SECRET)})
        self._assert_silent(caught, caplog)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://user:{secret}@127.0.0.1:1/db",
            "postgresql://user:{secret}@host:port/db",
            "postgresql://user:{secret}@host/db?no_such_option={secret}",
            "password={secret} dbname={secret}",
            "{secret}",
        ],
    )
    def test_environment_is_never_shown(self, url, monkeypatch, caplog):
        """Whatever stands in the variable, no message, cause or log repeats a password."""
        monkeypatch.setenv("INGEST_PGVECTOR_URL", url.replace("{secret}", self.SECRET))
        monkeypatch.setenv("PGHOST", "/nowhere")
        store = open_store("pgvector", "legal", STAMP, {})
        with caplog.at_level("DEBUG"), pytest.raises((StoreConfigError, StoreUnavailableError)) as caught:
            store.held_documents()
        self._assert_silent(caught, caplog)

    def test_wrong_password(self, server, schema, monkeypatch, caplog):
        """A refused password needs a person and is not shown; the right one counts from the next call on."""
        server.rows("CREATE ROLE guarded LOGIN PASSWORD 'correct-horse'")
        server.ask_for_password("guarded")
        monkeypatch.setenv("INGEST_PGVECTOR_URL", server.url_of("guarded", self.SECRET))
        store = server.store(schema, url="")
        with caplog.at_level("DEBUG"), pytest.raises(StoreConfigError, match="authentication failed") as caught:
            store.held_documents()
        self._assert_silent(caught, caplog)
        monkeypatch.setenv("INGEST_PGVECTOR_URL", server.url_of("guarded", "correct-horse"))
        assert store.held_documents() == []
        monkeypatch.delenv("INGEST_PGVECTOR_URL")
        monkeypatch.setenv("PGPASSWORD", "correct-horse")
        assert server.store(schema, url=server.url_of("guarded")).held_documents() == []

    def _assert_silent(self, caught, caplog):
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
        assert self.SECRET not in shown
