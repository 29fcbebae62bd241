"""Reports documents to Dagster, many at a time. With the `event_*` modules the only one that touches private calls.

Dagster's public calls report one event at a time (7-15 ms each) or report no run at all. Here the events of a batch are
made by hand and stored together (`benchmarks/bench_events.py` has the figures). `private_call_problems` says whether
the installed Dagster still has the calls used; where it has not, the public, slower fallback reports instead.

A partition of an asset shows
    materialized  when its newest event is a materialization,
    in progress   when its newest event is a planned one whose run is still running,
    failed        when its newest event is a planned one whose run ended as failed.
Dagster's open-source storages do not keep `ASSET_FAILED_TO_MATERIALIZE` events (`can_store_asset_failure_events` is
False), so a planned event is the only way to show a failed document of a run without partition tags.
"""

import functools
import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import groupby, islice
from operator import attrgetter
from time import time
from typing import Any, TypeVar

import dagster as dg

from ingest_assets.event_log.event_entries import (
    PartitionMaterialized,
    RunStep,
    materialization_of,
    materialized_entry,
    planned_entry,
)

BATCH_SIZE = 1_000  # events a transaction: 33 ms of a held write lock; twice as many are only 5 % cheaper an event

_T = TypeVar("_T")

_logger = logging.getLogger(__name__)

# What this module calls, and the parameters or fields it relies on. A canary test compares them on every upgrade.
_PRIVATE_CALLS: Mapping[str, frozenset[str]] = {
    "dagster._core.events:DagsterEvent": frozenset(
        {"event_type_value", "job_name", "event_specific_data", "message", "pid", "step_key"}
    ),
    "dagster._core.events:StepMaterializationData": frozenset({"materialization"}),
    "dagster._core.events:AssetMaterializationPlannedData": frozenset({"asset_key", "partition"}),
    "dagster._core.events.log:EventLogEntry": frozenset(
        {"error_info", "level", "user_message", "run_id", "timestamp", "step_key", "job_name", "dagster_event"}
    ),
    "dagster:serialize_value": frozenset({"val"}),
    "ingest_assets.event_log.event_log_storage:complete_run": frozenset({"storage", "run_id"}),
    "ingest_assets.event_log.event_log_storage:store_asset_events": frozenset({"storage", "entries"}),
    "dagster._core.storage.event_log:SqlEventLogStorage.store_event_batch": frozenset({"events"}),
    "dagster._core.storage.event_log:SqlEventLogStorage.index_transaction": frozenset(),
    "dagster._core.storage.event_log:SqlEventLogStorage.index_connection": frozenset(),
    "dagster._core.storage.event_log:AssetKeyTable.c.cached_status_data": frozenset(),
    "dagster._core.storage.event_log:SqlEventLogStorage._event_to_row": frozenset({"event"}),
    "dagster._core.storage.event_log:SqlEventLogStorage._tags_for_asset_event": frozenset({"event"}),
    "dagster._core.storage.event_log.schema:AssetEventTagsTable.name": frozenset(),
    "dagster._core.storage.event_log:SqlEventLogStorageTable.name": frozenset(),
    "dagster._core.storage.event_log:SqlEventLogStorage._store_asset_event": frozenset({"conn", "event", "event_id"}),
    "dagster._core.storage.event_log:SqliteEventLogStorage._connect": frozenset({"shard"}),
    "dagster._core.storage.event_log:SqliteEventLogStorage._initdb": frozenset({"engine", "for_index_shard"}),
    "dagster._core.instance:DagsterInstance.get_asset_partitions_for_run": frozenset({"run_id", "of_type"}),
}


def report_materialized(
    instance: dg.DagsterInstance, run: dg.DagsterRun, step_key: str, events: Sequence[PartitionMaterialized]
) -> None:
    """Store a materialization per element of `events` under `run`, in batches that are stored whole or not at all.

    Args:
        instance: where to store them.
        run: the run that made them.
        step_key: the step of the run that made them; the run page groups by it.
        events: any assets, any order; a batch is `BATCH_SIZE` of them.

    Raises:
        Exception: whatever the storage raised, for instance a database that stays locked. Of the batch in hand
            nothing is stored then (where Dagster makes the rows: nothing of the asset in hand), the batches before it
            are; `report_outside_run` with the same events adds what is missing.
    """
    if private_call_problems():
        for event in events:
            instance.report_runless_asset_event(materialization_of(event, {"run_id": run.run_id}))
        return
    step = RunStep.of(run, step_key)
    for batch in _batches(events):
        _store_materialized(instance, step, batch)


def report_failed(
    instance: dg.DagsterInstance,
    run: dg.DagsterRun,
    step_key: str,
    asset_key: dg.AssetKey,
    partitions: Sequence[str],
) -> None:
    """Make `partitions` of `asset_key` show as failed once `run` has ended as failed; until then as in progress.

    Needed for runs without partition tags. A run with them has its planned events from its start, and a second one
    changes nothing. Where the run ends otherwise, the partition shows what it showed before.
    """
    if private_call_problems():
        _logger.warning("%d failed partitions of %s cannot be shown.", len(partitions), asset_key.to_user_string())
        return
    from ingest_assets.event_log.event_log_storage import store_asset_events

    step = RunStep.of(run, step_key)
    for batch in _batches(partitions):
        entries = [planned_entry(step, asset_key, partition, time()) for partition in batch]
        store_asset_events(instance.event_log_storage, entries)


def report_outside_run(
    instance: dg.DagsterInstance, run: dg.DagsterRun, step_key: str, events: Sequence[PartitionMaterialized]
) -> list[PartitionMaterialized]:
    """Report what a run that is dead still owes, under its own id, and return what was missing.

    What the run had reported before it died is left out, so calling it again adds nothing.
    """
    if private_call_problems():
        report_materialized(instance, run, step_key, events)
        return list(events)
    from ingest_assets.event_log.event_log_storage import complete_run

    complete_run(instance.event_log_storage, run.run_id)
    known = instance.get_asset_partitions_for_run(run.run_id, dg.DagsterEventType.ASSET_MATERIALIZATION)
    owed = [event for event in events if event.partition not in known.get(event.asset_key, ())]
    report_materialized(instance, run, step_key, owed)
    return owed


def forget_cached_statuses(instance: dg.DagsterInstance, asset_keys: Iterable[dg.AssetKey]) -> None:
    """Make the next page view count these assets' partitions anew. To be called when a job has ended.

    Dagster counts on from the highest event it has seen, and reads the newest materialization and the newest planned
    event one after the other. A materialization and then a planned event stored between the two reads put the mark
    past documents that were not counted, which then stay missing on the page for good (measured with 4 writers and a
    page refreshed without pause: 0 to 2 of 32 batches, on both storages; the events themselves are right).
    """
    if private_call_problems():
        return
    from dagster._core.storage.event_log import AssetKeyTable, SqlEventLogStorage

    storage = instance.event_log_storage
    assert isinstance(storage, SqlEventLogStorage)
    of_these = AssetKeyTable.c.asset_key.in_([key.to_string() for key in asset_keys])
    with storage.index_connection() as connection:
        connection.execute(AssetKeyTable.update().values(cached_status_data=None).where(of_these))


@functools.cache
def private_call_problems() -> tuple[str, ...]:
    """What the installed Dagster lacks of the private calls used here; empty when all is as expected."""
    return tuple(problem for name, wanted in _PRIVATE_CALLS.items() for problem in _problems_of(name, wanted))


def _problems_of(name: str, wanted: frozenset[str]) -> Iterator[str]:
    try:
        target = _resolve(name)
    except (ImportError, AttributeError) as error:
        yield f"{name}: {error}"
        return
    missing = wanted and wanted - inspect.signature(target).parameters.keys()
    if missing:
        yield f"{name}: no longer takes {', '.join(sorted(missing))}"


def _resolve(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return attrgetter(attribute)(import_module(module))


def _store_materialized(instance: dg.DagsterInstance, step: RunStep, events: Sequence[PartitionMaterialized]) -> None:
    # Imported late: they need private modules, and their absence must end in the fallback, not in an ImportError.
    from ingest_assets.event_log.event_log_storage import store_asset_events, store_rows, takes_rows
    from ingest_assets.event_log.event_rows import rows_of_materialized

    storage = instance.event_log_storage
    if takes_rows(storage) and (rows := rows_of_materialized(storage, step, events)):
        store_rows(storage, rows)
        return
    for _, of_asset in groupby(sorted(events, key=_asset_path), key=_asset_path):
        # One asset a batch: Dagster's own storages update the asset of a batch's last event and no other.
        store_asset_events(storage, [materialized_entry(step, event, time()) for event in of_asset])


def _asset_path(event: PartitionMaterialized) -> tuple[str, ...]:
    return tuple(event.asset_key.path)


def _batches(events: Iterable[_T]) -> Iterator[list[_T]]:
    left = iter(events)
    return iter(lambda: list(islice(left, BATCH_SIZE)), [])
