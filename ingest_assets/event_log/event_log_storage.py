"""Dagster's event log on SQLite, with batches that cost one transaction a database, and the same for PostgreSQL.

Selected in `deploy/dagster.yaml`. Dagster's own class stores a batch event by event: three connections and their synced
commits each, 7-9 ms. It keeps two kinds of database: one a run, which the run page reads, and an index over all
runs, which asset pages and partition statuses read. A batch here is one transaction in each, with the same rows
(`tests/dagster_bridge/` compares them table by table).
"""

import functools
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeGuard

import dagster as dg
import sqlalchemy as db
from dagster._config import Field, StringSource, UserConfigSchema
from dagster._core.storage.event_log import EventLogStorage, SqlEventLogStorage, SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from ingest_assets.event_log.event_inserts import (
    begin_on_sqlite,
    insert_asset_rows,
    insert_on_postgres,
    insert_on_sqlite,
)
from ingest_assets.event_log.event_rows import EventRow, EventRows, rows_of_entries

INDEX_SHARD = "index"

_TOGETHER = frozenset(
    {
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        dg.DagsterEventType.ASSET_OBSERVATION,
    }
)
_CHECK_PLANNED = dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED

_logger = logging.getLogger(__name__)


class BatchSqliteEventLogStorage(SqliteEventLogStorage):
    """Dagster's SQLite event log whose batches, connections and new run databases are cheap."""

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        """`base_dir` may be left out or be relative to DAGSTER_HOME, so that one dagster.yaml fits any folder."""
        return {"base_dir": Field(StringSource, is_required=False, default_value="history/runs")}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Build from dagster.yaml.

        Raises:
            ValueError: `base_dir` is relative and DAGSTER_HOME is not set.
        """
        base_dir, home = Path(config_value["base_dir"]), os.environ.get("DAGSTER_HOME")
        if base_dir.is_absolute():
            return cls(str(base_dir), inst_data)
        if not home:
            raise ValueError(
                f"event_log_storage: base_dir {base_dir} is relative. Set DAGSTER_HOME or make it absolute."
            )
        return cls(str(Path(home).expanduser() / base_dir), inst_data)

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Store asset events together, whole or not at all; whatever else is in the batch as Dagster does.

        Dagster stores a batch that raised again, one by one, so nothing may raise once something is committed: a
        planned asset check stored twice fails its run later, one that is missing is added by its evaluation.
        """
        together = [event for event in events if event.dagster_event_type in _TOGETHER]
        apart = [event for event in events if event.dagster_event_type not in _TOGETHER]
        one_run = len({event.run_id for event in together}) == 1
        if not one_run or any(event.dagster_event_type != _CHECK_PLANNED for event in apart):
            super().store_event_batch(events)
            return
        self.store_rows(rows_of_entries(self, together))
        for event in apart:
            try:
                self.store_event(event)
            except Exception:
                _logger.exception("Run %s: a planned asset check was not stored.", event.run_id)

    def store_rows(self, batch: EventRows) -> None:
        """Store asset events of one run, whole or not at all.

        Commits are synced (`synchronous=FULL`, which Dagster leaves as it is). NORMAL would save 2.6 ms a batch of 400,
        but a power cut could then take the events of documents that are published and of a worker that is settled:
        nobody would report those again.
        """
        run_id = batch.rows[0].run_id
        with self._db_lock, self._opened(run_id) as run, self._opened(INDEX_SHARD) as index:
            begin_on_sqlite(run)
            insert_on_sqlite(run, batch.rows)
            begin_on_sqlite(index)
            insert_asset_rows(self, index, batch, insert_on_sqlite(index, batch.rows))
            # The index first: a kill in between leaves statuses right, and `complete_run` completes the run's page.
            index.commit()
            try:
                run.commit()
            except DatabaseError:
                _logger.exception("Run %s: its page lacks %d events; statuses are right.", run_id, len(batch.rows))

    def complete_run(self, run_id: str) -> None:
        """Give the run's database the asset events that only the index has; repeated, it changes nothing.

        The run was killed, or its disk full, between the two commits of a batch. Whoever wants to know what a dead run
        has told must call this first: asked alone, its database would have those events reported, and counted, twice.
        """
        with self._db_lock, self._opened(run_id) as run, self._opened(INDEX_SHARD) as index:
            begin_on_sqlite(run)
            told = {_without_text(row) for row in _asset_rows_of(run, run_id)}
            if untold := [row for row in _asset_rows_of(index, run_id) if _without_text(row) not in told]:
                insert_on_sqlite(run, untold)
                run.commit()

    def has_table(self, table_name: str) -> bool:
        """Whether the index has this table; Dagster asks for every single event with tags."""
        with self._engine(INDEX_SHARD).connect() as connection:
            return bool(connection.dialect.has_table(connection, table_name))

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._opened(shard) as connection, connection.begin():
            yield connection

    def _engine(self, shard: str) -> Engine:
        return _engine_of(self.conn_string_for_shard(shard))

    @contextmanager
    def _opened(self, shard: str) -> Iterator[Connection]:
        if shard not in self._initialized_dbs:
            self._initialise(shard)
            self._initialized_dbs.add(shard)
        with self._engine(shard).connect() as connection:
            yield connection

    def _initialise(self, shard: str) -> None:
        path = Path(self.path_for_shard(shard))
        if not path.exists() and shard != INDEX_SHARD:
            _copy_unless_there(self._template(), path)
        if not _has_schema(self._engine(shard)):
            self._initdb(self._engine(shard), for_index_shard=shard == INDEX_SHARD)

    def _template(self) -> Path:
        """An empty run database, made once for a Dagster version: a copy costs 1.6 ms, alembic 62."""
        template = Path(self._base_dir) / f"run-database-{dg.__version__}.template"
        if not template.exists():
            with tempfile.TemporaryDirectory(dir=self._base_dir, prefix="template-") as folder:
                made = Path(folder) / "run.db"
                self._initdb(_engine_of(f"sqlite:///{made}"))
                made.replace(template)
        return template


def store_asset_events(storage: EventLogStorage, entries: Sequence[dg.EventLogEntry]) -> None:
    """Store a batch of materializations, planned ones or observations, on any storage, the fastest way it has.

    Dagster's own batch on PostgreSQL leaves planned events to single inserts.
    """
    if takes_rows(storage):
        store_rows(storage, rows_of_entries(storage, entries))
    else:
        storage.store_event_batch(entries)


def takes_rows(storage: EventLogStorage) -> TypeGuard[SqlEventLogStorage]:
    """Whether `store_rows` can store on it: ours on SQLite, and Dagster's on PostgreSQL."""
    return isinstance(storage, SqlEventLogStorage) and (
        isinstance(storage, BatchSqliteEventLogStorage) or hasattr(storage, "postgres_url")
    )


def store_rows(storage: SqlEventLogStorage, batch: EventRows) -> None:
    """Store a batch of one run, whole or not at all, in a transaction a database."""
    if isinstance(storage, BatchSqliteEventLogStorage):
        storage.store_rows(batch)
    else:
        with storage.index_transaction() as connection:
            insert_asset_rows(storage, connection, batch, insert_on_postgres(connection, batch.rows))


def complete_run(storage: EventLogStorage, run_id: str) -> None:
    """Make the events of a run that died readable under it as they are under its assets; see `store_rows`."""
    if isinstance(storage, BatchSqliteEventLogStorage):
        storage.complete_run(run_id)


def _asset_rows_of(connection: Connection, run_id: str) -> Iterator[EventRow]:
    types = [event_type.value for event_type in sorted(_TOGETHER)]
    query = (
        f"SELECT {', '.join(EventRow._fields)} FROM event_logs "  # noqa: S608 - names of columns
        f"WHERE run_id = ? AND dagster_event_type IN ({', '.join('?' * len(types))}) ORDER BY id"
    )
    return (EventRow(*row) for row in connection.exec_driver_sql(query, (run_id, *types)))


def _without_text(row: EventRow) -> EventRow:
    """What tells one event of a run from another; its text is long, and a run may have many."""
    return row._replace(event="")


@functools.lru_cache(maxsize=16)
def _engine_of(conn_string: str) -> Engine:
    """An engine kept: making one costs 0.2 ms, and it holds the compiled statements.

    It keeps no connection open, though closing costs 4 ms a batch: with the last connection SQLite brings the database
    file up to date, and that file is what the webserver watches for a run page that is open.
    """
    return db.create_engine(conn_string, poolclass=NullPool, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})


def _has_schema(engine: Engine) -> bool:
    """Whether the database carries a schema version, all that Dagster's own initialisation asks, in 15-20 ms."""
    with engine.connect() as connection, suppress(DatabaseError):
        return connection.exec_driver_sql("SELECT version_num FROM alembic_version").first() is not None
    return False


def _copy_unless_there(template: Path, path: Path) -> None:
    """Copy atomically, never over a database that another process has just made; without hard links do nothing."""
    descriptor, copied = tempfile.mkstemp(dir=path.parent, prefix="run-database-", suffix=".copy")
    os.close(descriptor)
    try:
        shutil.copyfile(template, copied)
        with suppress(OSError):
            os.link(copied, path)
    finally:
        Path(copied).unlink()
