"""What the Dagster UI shows of documents that runs without partition tags reported, on each storage."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from ingest_assets.event_log.partition_events import (
    forget_cached_statuses,
    report_failed,
    report_materialized,
    report_outside_run,
)
from tests.dagster_bridge import ingest_project
from tests.dagster_bridge.graphql_client import Ui, ui_of
from tests.dagster_bridge.ingest_project import BUILT, EXTRACTED, STEP, materialized, run_batch


@pytest.fixture
def ui(instance: dg.DagsterInstance) -> Iterator[Ui]:
    instance.add_dynamic_partitions("documents", ["a", "b", "c", "d"])
    with ui_of(instance, Path(ingest_project.__file__)) as view:
        yield view


def test_a_pull_run_shows_its_documents_materialized_and_failed(instance, ui):
    """After a failed run without partition tags, each document shows what became of it."""
    result = run_batch(instance, succeed=["a", "b"], fail=["c"])
    assert not result.success
    for asset_key in (EXTRACTED, BUILT):
        assert ui.statuses(asset_key) == {"materialized": {"a", "b"}, "failed": {"c"}, "unmaterialized": {"d"}}
        assert ui.counts(asset_key) == (2, 1, 0)


def test_a_failed_document_that_succeeds_later_shows_materialized(instance, ui):
    """A materialization by a later run ends a failure, also when the failure has been looked at and is cached."""
    run_batch(instance, succeed=["b"], fail=["a"])
    assert ui.statuses(EXTRACTED)["failed"] == {"a"}
    run_batch(instance, succeed=["a"], fail=[])
    assert ui.statuses(EXTRACTED) == {"materialized": {"a", "b"}, "unmaterialized": {"c", "d"}}
    assert ui.counts(EXTRACTED) == (2, 0, 0)


@pytest.mark.parametrize("looked_at", [True, False], ids=["cached", "not cached"])
def test_a_document_that_succeeded_and_fails_now_shows_failed(instance, ui, looked_at):
    """The newest event decides in both calls of the UI; its old materialization stays readable."""
    run_batch(instance, succeed=["a", "b"], fail=[])
    if looked_at:
        assert ui.statuses(EXTRACTED)["materialized"] == {"a", "b"}
    run_batch(instance, succeed=[], fail=["a"])
    assert ui.statuses(EXTRACTED) == {"materialized": {"b"}, "failed": {"a"}, "unmaterialized": {"c", "d"}}
    assert ui.counts(EXTRACTED) == (1, 1, 0)
    assert instance.get_materialized_partitions(EXTRACTED) == {"a", "b"}


def test_a_failed_document_shows_in_progress_until_its_run_ends(instance, ui):
    """A planned event of a run that is still going reads as in progress, and as failed once that run has failed."""
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents", status=dg.DagsterRunStatus.STARTED))
    report_failed(instance, run, STEP, EXTRACTED, ["a"])
    report_materialized(instance, run, STEP, materialized(EXTRACTED, "b"))
    assert ui.statuses(EXTRACTED)["materializing"] == {"a"}
    instance.report_run_failed(run)
    assert ui.statuses(EXTRACTED) == {"materialized": {"b"}, "failed": {"a"}, "unmaterialized": {"c", "d"}}


def test_owed_events_stand_under_the_dead_run_and_only_once(instance, ui):
    """What a dead run had published but not reported appears on its own page; reporting again adds nothing."""
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents", status=dg.DagsterRunStatus.STARTED))
    report_materialized(instance, run, STEP, materialized(EXTRACTED, "a"))
    report_failed(instance, run, STEP, EXTRACTED, ["b"])
    instance.report_run_failed(run)
    owed = [*materialized(EXTRACTED, "a", "b"), *materialized(BUILT, "a")]
    assert [(e.asset_key, e.partition) for e in report_outside_run(instance, run, STEP, owed)] == [
        (EXTRACTED, "b"),
        (BUILT, "a"),
    ]
    assert report_outside_run(instance, run, STEP, owed) == []
    assert ui.counts(EXTRACTED) == (2, 0, 0)
    shown = ui.run(run.run_id)["assetMaterializations"]
    assert sorted((*m["assetKey"]["path"], m["partition"]) for m in shown) == [
        ("built", "default", "a"),
        ("extracted", "a"),
        ("extracted", "b"),
    ]


def test_the_run_page_lists_what_the_run_materialized(instance, ui):
    """Assets, materializations and their number are those of the run, each under the run's step."""
    run_id = run_batch(instance, succeed=["a", "b"], fail=[]).run_id
    page = ui.run(run_id)
    assert page["status"] == "SUCCESS"
    assert {tuple(asset["key"]["path"]) for asset in page["assets"]} == {("extracted",), ("built", "default")}
    assert len(page["assetMaterializations"]) == page["stats"]["materializations"] == 4
    newest = ui.asset(BUILT)["assetMaterializations"][0]
    assert newest == {"partition": "b", "runId": run_id, "stepKey": STEP}


def test_the_newest_materialization_carries_versions_and_metadata(instance, ui):
    """Conditions, sensors and `get_latest_materialization_event` read data version, code version and metadata there."""
    run_batch(instance, succeed=["a", "b"], fail=[])
    event = instance.get_latest_materialization_event(EXTRACTED)
    found = event.asset_materialization
    assert (found.partition, found.tags) == (
        "b",
        {
            "dagster/data_version": "v1-b",
            "dagster/data_version_is_user_provided": "true",
            "dagster/code_version": "7",
            "kind": "test",
        },
    )
    assert {key: value.value for key, value in found.metadata.items()} == {
        "chunks": 3,
        "source_uri": "docs:b",
        "dagster/row_count": 3,
    }
    latest = instance.get_latest_storage_id_by_partition(EXTRACTED, dg.DagsterEventType.ASSET_MATERIALIZATION)
    assert sorted(latest) == ["a", "b"]
    versions = instance.event_log_storage.get_latest_tags_by_partition(
        EXTRACTED, dg.DagsterEventType.ASSET_MATERIALIZATION, ["dagster/data_version"]
    )
    assert versions["a"] == {"dagster/data_version": "v1-a"}


def test_a_wiped_asset_shows_only_what_came_after(instance, ui):
    """Wiping forgets all documents of the asset and of no other; a later batch shows again."""
    run_batch(instance, succeed=["a", "b"], fail=[])
    instance.wipe_assets([EXTRACTED])
    assert ui.counts(EXTRACTED) == (0, 0, 0)
    assert ui.counts(BUILT) == (2, 0, 0)
    run_batch(instance, succeed=["c"], fail=[])
    assert ui.statuses(EXTRACTED)["materialized"] == {"c"}


def test_documents_a_page_view_overlooked_are_counted_after_forgetting(instance, ui, monkeypatch):
    """Events stored between a view's two reads may be left out of its cached count; forgetting it counts them."""
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents", status=dg.DagsterRunStatus.STARTED))
    report_materialized(instance, run, STEP, materialized(EXTRACTED, "a"))
    assert ui.statuses(EXTRACTED)["materialized"] == {"a"}
    storage, events = instance.event_log_storage, iter([materialized(EXTRACTED, "b")])
    original = storage.get_latest_planned_materialization_info

    def between_the_reads(*args, **kwargs):
        for owed in events:
            report_materialized(instance, run, STEP, owed)
            report_failed(instance, run, STEP, EXTRACTED, ["c"])
        return original(*args, **kwargs)

    monkeypatch.setattr(storage, "get_latest_planned_materialization_info", between_the_reads)
    ui.statuses(EXTRACTED)
    forget_cached_statuses(instance, [EXTRACTED])
    assert next(events, None) is None
    assert ui.statuses(EXTRACTED) == {"materialized": {"a", "b"}, "materializing": {"c"}, "unmaterialized": {"d"}}


def test_a_range_run_counts_its_documents_once(instance, ui):
    """A run with Dagster's range tags has planned events already; reporting a failure again changes nothing."""
    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "c"}
    run_batch(instance, succeed=["a", "b"], fail=["c"], tags=tags)
    assert ui.statuses(EXTRACTED) == {"materialized": {"a", "b"}, "failed": {"c"}, "unmaterialized": {"d"}}
