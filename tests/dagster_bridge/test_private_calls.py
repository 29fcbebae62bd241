"""The guard around Dagster's private calls: a canary for upgrades, and what happens where one is gone."""

import logging

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage

from ingest_assets.event_log import partition_events
from ingest_assets.event_log.partition_events import (
    private_call_problems,
    report_failed,
    report_materialized,
    report_outside_run,
)
from tests.dagster_bridge.ingest_project import EXTRACTED, STEP, materialized


@pytest.fixture
def upgraded(monkeypatch):
    """A Dagster that lacks one of the calls."""
    monkeypatch.setattr(
        partition_events,
        "_PRIVATE_CALLS",
        {"dagster._core.events:GoneData": frozenset(), **partition_events._PRIVATE_CALLS},
    )
    private_call_problems.cache_clear()
    yield
    private_call_problems.cache_clear()


def test_canary_the_private_calls_are_as_they_were():
    """Fails on the upgrade that changes one, naming it; until it is mended the public calls report, slowly."""
    assert private_call_problems() == ()


def test_canary_dagsters_sqlite_storage_has_what_ours_builds_on(tmp_path):
    """The attributes our subclass shares with its base are still there and mean the same."""
    storage = SqliteEventLogStorage(str(tmp_path))
    assert storage._base_dir == str(tmp_path)
    assert not storage._db_lock.locked()
    with storage.run_connection("run"):
        assert storage._db_lock.locked()
        assert "run" in storage._initialized_dbs


@pytest.mark.parametrize(
    ("name", "wanted", "problem"),
    [
        ("dagster._core.nowhere:Thing", frozenset(), "No module named"),
        ("dagster._core.events:GoneData", frozenset(), "no attribute 'GoneData'"),
        ("dagster._core.events:DagsterEvent", frozenset({"flavour"}), "no longer takes flavour"),
    ],
)
def test_a_problem_names_the_call_and_what_is_wrong(name, wanted, problem):
    """Whoever upgrades reads which call moved, vanished or lost which parameter."""
    (found,) = partition_events._problems_of(name, wanted)
    assert found.startswith(name)
    assert problem in found


def test_without_the_private_calls_documents_still_become_materialized(instance, upgraded):
    """The public call knows no run: the partition is materialized with its versions, the run's id is metadata."""
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents"))
    report_materialized(instance, run, STEP, materialized(EXTRACTED, "a"))
    assert instance.get_materialized_partitions(EXTRACTED) == {"a"}
    found = instance.get_latest_materialization_event(EXTRACTED).asset_materialization
    assert found.metadata["run_id"].value == run.run_id
    assert found.tags["dagster/data_version"] == "v1-a"


def test_without_the_private_calls_a_failure_is_said_in_the_log(instance, upgraded, caplog):
    """No public call shows a failed document of a run without partition tags; nothing is stored, and it is said."""
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents"))
    with caplog.at_level(logging.WARNING):
        report_failed(instance, run, STEP, EXTRACTED, ["a", "b"])
    assert "2 failed partitions of extracted cannot be shown" in caplog.text


def test_without_the_private_calls_owed_documents_are_all_reported(instance, upgraded):
    """What the dead run had reported cannot be asked for, so everything owed is reported again."""
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents"))
    owed = materialized(EXTRACTED, "a", "b")
    assert report_outside_run(instance, run, STEP, owed) == owed
    assert instance.get_materialized_partitions(EXTRACTED) == {"a", "b"}
