"""Rows made without Dagster's objects: the same bytes in every column as Dagster's own, or Dagster makes them."""

import logging
import math

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqlEventLogStorage, SqliteEventLogStorage
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2

from ingest_assets.event_log import event_rows, partition_events
from ingest_assets.event_log.event_entries import PartitionMaterialized, RunStep, materialized_entry
from ingest_assets.event_log.event_log_storage import BatchSqliteEventLogStorage
from ingest_assets.event_log.event_rows import rows_of_materialized
from ingest_assets.event_log.event_texts import spliced
from ingest_assets.event_log.partition_events import report_materialized
from tests.dagster_bridge.event_tables import empty, rows, rows_on_postgres
from tests.dagster_bridge.ingest_project import BUILT, EXTRACTED, STEP, materialized

RUN = dg.DagsterRun(job_name='ingest 100% "job"', run_id="00000000-0000-0000-0000-000000000001")
RUN_STEP = RunStep.of(RUN, STEP)
ODD_TEXTS = [
    "plain",
    "",
    'quotes " and \' and """',
    "back\\slash \\u0041 \\N \\.",
    "tab\tnew\nline\rreturn",
    "bell \x07 escape \x1b delete \x7f",
    "umlaut ä, 漢字, emoji 😀 👩‍👩‍👧, combining e\u0301",
    "\u2028 and \u2029 end lines in JavaScript",
    "100 % and %s and %(name)s and {0}",
    '{"__class__": "AssetKey", "path": ["x"]}',
    "x" * 100_000,
]


def event(partition: str = "a", **changes) -> PartitionMaterialized:
    return PartitionMaterialized(
        **{"asset_key": EXTRACTED, "partition": partition, "data_version": "v1", "code_version": "7", **changes}
    )


def as_dagster_serialises(of: PartitionMaterialized, timestamp: float) -> str:
    return dg.serialize_value(materialized_entry(RUN_STEP, of, timestamp))


def text_of(of: PartitionMaterialized, timestamp: float = 1_800_000_000.123456) -> str | None:
    made = spliced(RUN_STEP, of, timestamp)
    return made and made[1]


class Instance:
    """All that `report_materialized` asks of a Dagster instance."""

    def __init__(self, storage: SqlEventLogStorage) -> None:
        self.event_log_storage = storage


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_are_written_as_dagster_writes_them(text):
    """In the partition, in versions and in metadata, under odd labels and asset keys too: equal byte for byte."""
    of = event(
        text or "p",
        asset_key=dg.AssetKey(["built", "100% odd é"]),
        data_version=text,
        code_version=text,
        metadata={"title": text, '100 % é "label"': text, "n": 1, "page": dg.MetadataValue.url(text), "later": text},
    )
    assert text_of(of) == as_dagster_serialises(of, 1_800_000_000.123456)


@pytest.mark.parametrize(
    "value",
    ["t", 0, -1, 12, 2**80, 0.0, -0.0, 1.5, 1e-9, 1e300, 0.1 + 0.2, True, False],
    ids=repr,
)
def test_values_of_each_cheap_type_are_written_as_dagster_writes_them(value):
    """And with no code version, with further tags and with no metadata at all."""
    for of in (
        event(metadata={"value": value}),
        event(metadata={"value": value, "again": value, "text": "x"}, code_version=None),
        event(metadata={}, tags={"kind": "test", "free": "tag"}),
    ):
        assert text_of(of) == as_dagster_serialises(of, 1_800_000_000.123456)


@given(
    texts=st.lists(st.text(min_size=1), min_size=3, max_size=3),
    numbers=st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(), max_size=4),
    timestamp=st.floats(0, 4e9),
)
def test_whatever_the_values_the_text_is_dagsters(texts, numbers, timestamp):
    """Any text, number and time."""
    partition, version, title = texts
    of = event(
        partition,
        data_version=version,
        metadata={"title": title, **{f"n{place}": number for place, number in enumerate(numbers)}},
    )
    assert text_of(of, timestamp) == as_dagster_serialises(of, timestamp)


class Text(str):
    __slots__ = ()


DAGSTERS_BUSINESS = {
    "not a number": {"metadata": {"x": math.nan}},
    "infinite": {"metadata": {"x": -math.inf}},
    "a metadata value": {"metadata": {"x": dg.MetadataValue.md("*text*")}},
    "a list": {"metadata": {"x": [1, 2]}},
    "nothing": {"metadata": {"x": None}},
    "a kind of text": {"metadata": {"x": Text("x")}},
    "no partition": {"partition": ""},
    "a dimension": {"tags": {"dagster/partition/day": "monday"}},
    "a label like a mark": {"metadata": {"\0ingest mark 0\0": "x"}},
}


@pytest.mark.parametrize("name", DAGSTERS_BUSINESS)
def test_what_is_not_known_to_be_written_alike_is_left_to_dagster(tmp_path, name):
    """The whole batch then goes the slow way, and lands as Dagster makes it."""
    odd = event(**{"partition": "b", **DAGSTERS_BUSINESS[name]})
    storage = BatchSqliteEventLogStorage(str(tmp_path))
    assert rows_of_materialized(storage, RUN_STEP, [event("a"), odd]) is None
    report_materialized(Instance(storage), RUN, STEP, [event("a"), odd])
    stored = rows(tmp_path / "index.db")["event_logs"]
    assert len(stored) == 2
    found = dg.deserialize_value(stored[1][2], dg.EventLogEntry).asset_materialization
    assert found.metadata.keys() == odd.metadata.keys()


def test_what_dagster_refuses_is_refused(tmp_path):
    """A tag that is not allowed raises as before, each time, and nothing of its batch is stored."""
    storage = BatchSqliteEventLogStorage(str(tmp_path))
    for _ in range(2):
        with pytest.raises(dg.DagsterInvalidDefinitionError, match="Invalid tag value"):
            report_materialized(Instance(storage), RUN, STEP, [event("a"), event("b", tags={"kind": "not allowed!"})])
    assert rows(tmp_path / "index.db")["event_logs"] == []


def mixed_batch() -> list[PartitionMaterialized]:
    """Two assets, several shapes, a partition twice, odd texts; sorted by asset, as the slow way stores them."""
    built = materialized(BUILT, "a", "b", "tab\t\\N é 😀")
    extracted = [
        event(f"doc {place}", metadata={"title": text[:200], "seconds": 0.25, "kept": place % 2 == 0})
        for place, text in enumerate(ODD_TEXTS)
    ]
    return [
        *[PartitionMaterialized(asset_key=BUILT, partition=e.partition, data_version=e.data_version) for e in built],
        *extracted,
        event("doc 0", metadata={"title": "again"}),
        event("no code version", code_version=None),
    ]


@pytest.fixture(params=[1_800_000_000.123456, 1_800_000_000.0], ids=["microseconds", "whole second"])
def pinned(request, monkeypatch):
    for module in (event_rows, partition_events):
        monkeypatch.setattr(module, "time", lambda: request.param)


def test_reported_on_sqlite_the_tables_hold_what_dagsters_class_stores(tmp_path, pinned):
    """Every table of both databases, after one batch and after a second."""
    ours, theirs = BatchSqliteEventLogStorage(str(tmp_path / "o")), SqliteEventLogStorage(str(tmp_path / "t"))
    assert rows_of_materialized(ours, RUN_STEP, mixed_batch())
    for _ in range(2):
        for storage in (ours, theirs):
            report_materialized(Instance(storage), RUN, STEP, mixed_batch())
        for database in ("index.db", f"{RUN.run_id}.db"):
            found = rows(tmp_path / "o" / database)
            assert found == rows(tmp_path / "t" / database)
            assert len(found["event_logs"]) % len(mixed_batch()) == 0


@pytest.mark.parametrize("driver", ["psycopg2", "another"])
def test_reported_on_postgresql_the_tables_hold_what_single_events_leave(postgres_url, pinned, monkeypatch, driver):
    """By COPY, and by plain inserts where the driver is not psycopg2."""
    from dagster_postgres import PostgresEventLogStorage

    storage, found = PostgresEventLogStorage(postgres_url), []
    monkeypatch.setattr(PGDialect_psycopg2, "driver", driver)
    timestamp = event_rows.time()
    for store in (
        lambda events: [storage.store_event(materialized_entry(RUN_STEP, e, timestamp)) for e in events],
        lambda events: report_materialized(Instance(storage), RUN, STEP, events),
    ):
        empty(storage)
        store(mixed_batch())
        store(mixed_batch())
        found.append(rows_on_postgres(storage))
    assert rows_of_materialized(storage, RUN_STEP, mixed_batch())
    assert found[0] == found[1]
    assert len(found[0]["event_logs"]) == 2 * len(mixed_batch())


@pytest.mark.parametrize("changed", ["event", "timestamp", "tags"])
def test_after_an_upgrade_that_stores_events_in_another_way_dagster_makes_them(tmp_path, monkeypatch, caplog, changed):
    """Nothing is stored that Dagster would not store: the batch goes the slow way, and the log says so."""
    storage = BatchSqliteEventLogStorage(str(tmp_path))
    row_of, tags_of = SqlEventLogStorage._event_to_row, SqlEventLogStorage._tags_for_asset_event

    def changed_row(self, entry):
        row = row_of(self, entry)
        if changed == "event":
            return {**row, "event": row["event"].replace('"user_message": ""', '"user_message": "", "zone": 1')}
        return {**row, "timestamp": row["timestamp"].replace(year=2000)} if changed == "timestamp" else row

    def changed_tags(self, entry):
        return {**tags_of(self, entry), **({"dagster/more": "x"} if changed == "tags" else {})}

    monkeypatch.setattr(SqlEventLogStorage, "_event_to_row", changed_row)
    monkeypatch.setattr(SqlEventLogStorage, "_tags_for_asset_event", changed_tags)
    with caplog.at_level(logging.WARNING):
        report_materialized(Instance(storage), RUN, STEP, [event("a"), event("b")])
    assert "Dagster stores events" in caplog.text
    stored = rows(tmp_path / "index.db")
    assert [row[7] for row in stored["event_logs"]] == ["a", "b"]
    assert all(('"zone": 1' in row[2]) == (changed == "event") for row in stored["event_logs"])
    assert all(row[4].startswith("2000") == (changed == "timestamp") for row in stored["event_logs"])
    assert len(stored["asset_event_tags"]) == (4 if changed == "tags" else 2)
