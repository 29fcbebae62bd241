"""Dagster's event objects, built by hand: what a run's step would have logged for one document.

Private modules are imported inside the functions: their absence must end in the fallback of `partition_events`, not in
an ImportError.
"""

import logging
import os
from collections.abc import Mapping
from typing import Any

import dagster as dg
import msgspec

DATA_VERSION = "dagster/data_version"
_DATA_VERSION_IS_GIVEN = "dagster/data_version_is_user_provided"
_CODE_VERSION = "dagster/code_version"


class PartitionMaterialized(msgspec.Struct, frozen=True, kw_only=True):
    """One document that one asset now has.

    `data_version` and `code_version` become the tags Dagster itself writes for an output that brings its data version;
    `tags` are added to them. Metadata of plain str, int, finite float and bool is cheap; one event with any other value
    makes its whole batch ten times slower (`event_rows.py`).
    """

    asset_key: dg.AssetKey
    partition: str
    data_version: str
    code_version: str | None = None
    metadata: Mapping[str, dg.MetadataValue | str | int | float] = {}
    tags: Mapping[str, str] = {}


class RunStep(msgspec.Struct, frozen=True):
    """The step of a run that events are stored under."""

    run_id: str
    job_name: str
    step_key: str
    pid: int

    @classmethod
    def of(cls, run: dg.DagsterRun, step_key: str) -> "RunStep":
        """The step `step_key` of `run`, in this process."""
        return cls(run.run_id, run.job_name, step_key, os.getpid())


def materialization_of(
    event: PartitionMaterialized, more_metadata: Mapping[str, str] | None = None
) -> dg.AssetMaterialization:
    """The materialization with its versions as tags."""
    versions = {DATA_VERSION: event.data_version, _DATA_VERSION_IS_GIVEN: "true"}
    if event.code_version is not None:
        versions[_CODE_VERSION] = event.code_version
    return dg.AssetMaterialization(
        event.asset_key,
        partition=event.partition,
        metadata={**event.metadata, **(more_metadata or {})},
        tags={**event.tags, **versions},
    )


def materialized_entry(step: RunStep, event: PartitionMaterialized, timestamp: float) -> dg.EventLogEntry:
    """What Dagster logs when a step materialized a partition."""
    from dagster._core.events import StepMaterializationData

    return _entry(
        step,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        StepMaterializationData(materialization_of(event)),
        f"Materialized value {' '.join(event.asset_key.path)}.",
        timestamp,
    )


def planned_entry(step: RunStep, asset_key: dg.AssetKey, partition: str, timestamp: float) -> dg.EventLogEntry:
    """What Dagster logs when a run sets out to materialize a partition."""
    from dagster._core.events import AssetMaterializationPlannedData

    return _entry(
        step,
        dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        AssetMaterializationPlannedData(asset_key, partition=partition),
        f"{step.job_name} intends to materialize asset {asset_key.to_string()}",
        timestamp,
    )


def _entry(
    step: RunStep, event_type: dg.DagsterEventType, data: Any, message: str, timestamp: float
) -> dg.EventLogEntry:
    event = dg.DagsterEvent(
        event_type_value=event_type.value,
        job_name=step.job_name,
        event_specific_data=data,
        message=message,
        pid=step.pid,
        step_key=step.step_key,
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=logging.DEBUG,
        user_message="",
        run_id=step.run_id,
        timestamp=timestamp,
        step_key=step.step_key,
        job_name=step.job_name,
        dagster_event=event,
    )
