"""Our event log storage against Dagster's own: the same rows, whatever fails in between."""

import shutil
import sqlite3
import threading
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as db
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import AssetMaterializationPlannedData, AssetObservationData, StepMaterializationData
from dagster._core.storage.event_log import SqliteEventLogStorage
from sqlalchemy.engine import Connection

from ingest_assets.event_log import event_log_storage
from ingest_assets.event_log.event_log_storage import BatchSqliteEventLogStorage, store_asset_events
from ingest_assets.event_log.partition_events import report_materialized, report_outside_run
from tests.dagster_bridge.conftest import OURS, instance_in
from tests.dagster_bridge.event_tables import empty, rows, rows_on_postgres
from tests.dagster_bridge.ingest_project import BUILT, EXTRACTED, STEP, materialized, run_batch

RUN = "00000000-0000-0000-0000-000000000001"
TYPES = dg.DagsterEventType


def entry(kind: TYPES, asset_key: dg.AssetKey, partition: str, at: int) -> dg.EventLogEntry:
    about = {"partition": partition, "tags": {"dagster/data_version": partition, "free": "tag"}}
    data = {
        TYPES.ASSET_MATERIALIZATION: lambda: StepMaterializationData(dg.AssetMaterialization(asset_key, **about)),
        TYPES.ASSET_OBSERVATION: lambda: AssetObservationData(dg.AssetObservation(asset_key, **about)),
        TYPES.ASSET_MATERIALIZATION_PLANNED: lambda: AssetMaterializationPlannedData(asset_key, partition),
    }[kind]()
    event = dg.DagsterEvent(kind.value, "ingest_documents", event_specific_data=data, step_key="ingest", pid=1)
    return dg.EventLogEntry(None, 10, "", RUN, 1_800_000_000.123456 + at, "ingest", "ingest_documents", event)


def batch(name: str, start: int = 0) -> list[dg.EventLogEntry]:
    done, planned, seen = TYPES.ASSET_MATERIALIZATION, TYPES.ASSET_MATERIALIZATION_PLANNED, TYPES.ASSET_OBSERVATION
    shapes = {
        "one asset": [(done, EXTRACTED, "a"), (done, EXTRACTED, "b"), (done, EXTRACTED, "a")],
        "planned only": [(planned, EXTRACTED, "a"), (planned, BUILT, "a")],
        "observed": [(seen, BUILT, "a"), (seen, BUILT, "b")],
        "mixed": [
            (done, BUILT, "a"),
            (planned, EXTRACTED, "b"),
            (seen, EXTRACTED, "b"),
            (done, EXTRACTED, "a"),
            (planned, BUILT, "c"),
            (done, EXTRACTED, "é"),
        ],
    }
    return [entry(*what, at=start + place) for place, what in enumerate(shapes[name])]


def partitions_in(path: Path) -> Counter:
    return Counter(row[7] for row in rows(path)["event_logs"] if row[7])


@pytest.mark.parametrize("name", ["one asset", "planned only", "observed", "mixed"])
def test_a_batch_leaves_the_rows_dagsters_class_leaves(tmp_path, name):
    """Every table of both databases is equal after a batch, after a second one, and after a wipe in between."""
    ours, theirs = BatchSqliteEventLogStorage(str(tmp_path / "o")), SqliteEventLogStorage(str(tmp_path / "t"))
    for start in (0, 100):
        for storage in (ours, theirs):
            storage.store_event_batch(batch(name, start))
        for database in ("index.db", f"{RUN}.db"):
            assert rows(tmp_path / "o" / database) == rows(tmp_path / "t" / database)
    for storage in (ours, theirs):
        storage.wipe_asset(EXTRACTED)
        storage.store_event_batch(batch(name, 200))
    event_logs = [rows(tmp_path / folder / "index.db")["event_logs"] for folder in "ot"]
    assert event_logs[0] == event_logs[1]


@pytest.mark.parametrize("name", ["one asset", "planned only", "mixed"])
def test_a_batch_on_postgresql_leaves_the_rows_single_events_leave(postgres_url, name):
    """One transaction for all, with the rows and the assets' last events that Dagster's single inserts leave."""
    from dagster_postgres import PostgresEventLogStorage

    storage, found = PostgresEventLogStorage(postgres_url), []
    for store in (
        lambda events: [storage.store_event(e) for e in events],
        lambda events: store_asset_events(storage, events),
    ):
        empty(storage)
        store(batch(name))
        store(batch(name, 100))
        found.append(rows_on_postgres(storage))
    assert found[0] == found[1]


def test_no_event_gets_an_id_below_a_batch_that_is_not_committed_yet(postgres_url, monkeypatch):
    """Cached statuses read "ids above the highest seen": an event stored meanwhile waits and gets a higher id."""
    from dagster_postgres import PostgresEventLogStorage

    storage = PostgresEventLogStorage(postgres_url)
    other = threading.Thread(target=storage.store_event, args=[entry(TYPES.ASSET_OBSERVATION, BUILT, "other", 0)])
    original = event_log_storage.insert_asset_rows

    def in_the_transaction(*args):
        other.start()
        other.join(timeout=0.3)
        assert other.is_alive()
        original(*args)

    monkeypatch.setattr(event_log_storage, "insert_asset_rows", in_the_transaction)
    store_asset_events(storage, batch("one asset"))
    other.join()
    with storage.index_connection() as connection:
        ids = connection.execute(db.text("SELECT partition FROM event_logs ORDER BY id DESC LIMIT 2")).scalars().all()
    assert ids == ["other", "a"]


class CommitThatFails:
    """Makes the nth commit fail before it happened, as a full disk or a lock would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
        self._left, original = nth, Connection.commit

        def commit(connection):
            self._left -= 1
            if self._left == 0:
                raise db.exc.OperationalError("COMMIT", None, sqlite3.OperationalError("disk is full"))
            original(connection)

        monkeypatch.setattr(Connection, "commit", commit)


@pytest.fixture
def ours(tmp_path, blank_home, monkeypatch):
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "1000")
    with instance_in(shutil.copytree(blank_home, tmp_path / "home"), OURS, monkeypatch) as made:
        run_batch(made, succeed=[], fail=[])  # so that databases exist and the next commits are the batch's own
        yield made


def folder_of(instance: dg.DagsterInstance) -> Path:
    return Path(instance.event_log_storage._base_dir)


def send_as_dagster_does(instance: dg.DagsterInstance, events: list[dg.EventLogEntry]) -> None:
    from dagster._core.events import DagsterEventBatchMetadata

    for place, event in enumerate(events, 1):
        instance.handle_new_event(event, batch_metadata=DagsterEventBatchMetadata("batch", place == len(events)))


@pytest.mark.parametrize(("nth", "in_run_database"), [(1, 1), (2, 0)], ids=["index fails", "run database fails"])
def test_a_batch_that_fails_between_the_databases_is_not_stored_twice(ours, monkeypatch, nth, in_run_database):
    """Failing before anything is committed raises, and Dagster stores singly; failing after it only logs."""
    ours.event_log_storage.store_event(entry(TYPES.ASSET_OBSERVATION, BUILT, "first", 0))
    CommitThatFails(monkeypatch, nth)
    send_as_dagster_does(ours, [*batch("planned only"), entry(TYPES.ASSET_MATERIALIZATION, BUILT, "x", 9)])
    assert partitions_in(folder_of(ours) / "index.db") == {"first": 1, "a": 2, "x": 1}
    assert partitions_in(folder_of(ours) / f"{RUN}.db")["x"] == in_run_database


def test_a_run_killed_between_the_databases_is_told_of_once(ours, monkeypatch):
    """What only the index has completes the run's database, however many sweeps come by, and is not sent again."""
    run = ours.add_run(dg.DagsterRun(job_name="ingest_documents", run_id=RUN, status=dg.DagsterRunStatus.STARTED))
    report_materialized(ours, run, STEP, materialized(EXTRACTED, "first"))
    CommitThatFails(monkeypatch, 2)  # logged; what is left of it is what a kill leaves
    report_materialized(ours, run, STEP, materialized(EXTRACTED, "a"))
    assert partitions_in(folder_of(ours) / f"{RUN}.db") == {"first": 1}
    for owed in (["b"], []):
        events = materialized(EXTRACTED, "first", "a", "b")
        assert [event.partition for event in report_outside_run(ours, run, STEP, events)] == owed
        for database in ("index.db", f"{RUN}.db"):
            assert partitions_in(folder_of(ours) / database) == {"first": 1, "a": 1, "b": 1}


def test_a_refused_batch_leaves_nothing_in_either_database(ours, monkeypatch):
    """The caller of `store_event_batch` gets the error and may try again: no database holds a part of the batch."""
    CommitThatFails(monkeypatch, 1)
    with pytest.raises(db.exc.OperationalError, match="disk is full"):
        ours.event_log_storage.store_event_batch(batch("mixed"))
    for database in ("index.db", f"{RUN}.db"):
        assert "c" not in partitions_in(folder_of(ours) / database)


def test_planned_asset_checks_of_a_batch_are_stored_as_dagster_does(ours):
    """A range run's planned events and its planned check come in one batch; the check's evaluation finds its row."""
    ours.add_dynamic_partitions("documents", ["a", "b"])
    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    run_id = run_batch(ours, succeed=["a", "b"], fail=[], tags=tags).run_id
    assert len(ours.all_logs(run_id, of_type=TYPES.ASSET_MATERIALIZATION_PLANNED)) == 4
    key = dg.AssetCheckKey(EXTRACTED, "within_spend_ceiling")
    history = ours.event_log_storage.get_asset_check_execution_history(key, limit=10)
    assert [(record.run_id, record.status.value) for record in history if record.run_id == run_id] == [
        (run_id, "SUCCEEDED")
    ]


def test_a_planned_check_that_cannot_be_stored_does_not_undo_the_batch(tmp_path, monkeypatch, caplog):
    """The asset events are committed by then, so raising would store them twice; the loss is said, and it is small."""
    storage = BatchSqliteEventLogStorage(str(tmp_path))
    planned = AssetCheckEvaluationPlanned(asset_key=EXTRACTED, check_name="within_spend_ceiling")
    event = dg.DagsterEvent(
        TYPES.ASSET_CHECK_EVALUATION_PLANNED.value, "ingest_documents", event_specific_data=planned, step_key="ingest"
    )
    check = dg.EventLogEntry(None, 10, "", RUN, 1.0, "ingest", "ingest_documents", event)

    def refuse(*_args):
        raise db.exc.OperationalError("INSERT", None, sqlite3.OperationalError("database is locked"))

    monkeypatch.setattr(SqliteEventLogStorage, "store_event", refuse)
    storage.store_event_batch([*batch("planned only"), check])
    assert partitions_in(tmp_path / "index.db") == {"a": 2}
    assert "a planned asset check was not stored" in caplog.text


def test_other_events_of_a_batch_go_to_dagsters_class(tmp_path):
    """A batch with an event that is neither an asset's nor a planned check is stored one by one, in its order."""
    storage = BatchSqliteEventLogStorage(str(tmp_path))
    start = dg.DagsterEvent(TYPES.STEP_START.value, "ingest_documents", step_key="ingest")
    other = dg.EventLogEntry(None, 10, "", RUN, 1.0, "ingest", "ingest_documents", start)
    storage.store_event_batch([other, *batch("one asset")])
    types = [row[3] for row in rows(tmp_path / f"{RUN}.db")["event_logs"]]
    assert types == ["STEP_START"] + ["ASSET_MATERIALIZATION"] * 3


def test_a_run_database_from_the_template_is_what_alembic_makes(tmp_path):
    """Tables, indexes, schema version and journal mode are the same, and the template is not taken for a run."""
    ours, theirs = BatchSqliteEventLogStorage(str(tmp_path / "o")), SqliteEventLogStorage(str(tmp_path / "t"))
    looks = []
    for storage, folder in ((ours, "o"), (theirs, "t")):
        storage.store_event(entry(TYPES.ASSET_OBSERVATION, BUILT, "a", 0))
        connection = sqlite3.connect(tmp_path / folder / f"{RUN}.db")
        looks.append(
            [
                sorted(map(str, connection.execute("SELECT type, name, sql FROM sqlite_master"))),
                connection.execute("SELECT version_num FROM alembic_version").fetchall(),
                connection.execute("PRAGMA journal_mode").fetchall(),
            ]
        )
        connection.close()
    assert looks[0] == looks[1]
    assert ours.get_all_run_ids() == [RUN]
    assert sorted(p.suffix for p in (tmp_path / "o").iterdir() if p.suffix not in {".db", ".db-wal", ".db-shm"}) == [
        ".template"
    ]


def test_processes_that_make_a_run_database_at_once_lose_nothing(tmp_path):
    """A database another has just made is never replaced: each of eight first events is there."""
    storages = [BatchSqliteEventLogStorage(str(tmp_path)) for _ in range(8)]
    barrier = threading.Barrier(8)

    def first_event(number: int) -> None:
        barrier.wait()
        storages[number].store_event(entry(TYPES.ASSET_OBSERVATION, BUILT, str(number), number))

    threads = [threading.Thread(target=first_event, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(partitions_in(tmp_path / f"{RUN}.db")) == {str(number) for number in range(8)}


def test_without_hard_links_a_run_database_is_made_by_alembic(tmp_path, monkeypatch):
    """Some file systems have no hard links; then a run's database costs what it costs Dagster."""

    def refuse(*_args):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", refuse)
    BatchSqliteEventLogStorage(str(tmp_path)).store_event_batch(batch("one asset"))
    assert partitions_in(tmp_path / f"{RUN}.db") == {"a": 2, "b": 1}


@pytest.mark.parametrize(("given", "lands"), [("", "home/history/runs"), ("events", "home/events")])
def test_the_base_folder_may_be_left_out_or_relative(tmp_path, monkeypatch, given, lands):
    """One dagster.yaml fits every DAGSTER_HOME."""
    config = f"  config:\n    base_dir: {given}\n" if given else ""
    with instance_in(tmp_path / "home", OURS + config, monkeypatch) as instance:
        assert folder_of(instance) == tmp_path / lands


def test_a_relative_base_folder_needs_dagster_home(monkeypatch):
    """Without it nothing says where the folder is, and the working directory would be a guess."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with pytest.raises(ValueError, match="Set DAGSTER_HOME"):
        BatchSqliteEventLogStorage.from_config_value(None, {"base_dir": "history/runs"})


def test_the_template_of_dagster_yaml_works_as_it_is(tmp_path, monkeypatch):
    """Copied into any DAGSTER_HOME it gives our event log there, monitoring and no telemetry."""
    template = Path(__file__).parents[2] / "deploy" / "dagster.yaml"
    (tmp_path / "dagster.yaml").write_text(template.read_text())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        assert isinstance(instance.event_log_storage, BatchSqliteEventLogStorage)
        assert folder_of(instance) == tmp_path / "history" / "runs"
        assert not instance.telemetry_enabled
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 60
