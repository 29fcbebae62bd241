"""The map of the system: what Dagster loads, wired in one place."""

import dagster as dg

from ingest_assets import asset_keys, sensor_ticks
from ingest_assets.assets import build_document_assets, build_source_assets
from ingest_assets.checks import build_checks
from ingest_assets.engine.progress import UNWATCHED, Onlooker
from ingest_assets.jobs import (
    build_check_job,
    build_gc_job,
    build_ingest_job,
    build_mark_job,
    build_schedules,
    build_verify_job,
)
from ingest_assets.settings import Settings, load_settings
from resources.dagster_resources import ArtifactStoreResource, DocumentStateStoreResource
from sensors.backlog import build_backlog_sensor
from sensors.discovery import build_discovery_sensor
from sensors.interrupted_runs import build_interrupted_runs_sensor


def build_definitions(settings: Settings, onlooker: Onlooker = UNWATCHED) -> dg.Definitions:
    """Everything, from the settings alone: nothing is opened, listed or written here."""
    ingest_job, check_job, mark_job = build_ingest_job(settings), build_check_job(settings), build_mark_job(settings)
    verify_job, gc_job = build_verify_job(settings), build_gc_job(settings)
    interval = settings.discovery.interval_seconds
    return dg.Definitions(
        assets=[*build_source_assets(settings), build_document_assets(settings, onlooker)],
        asset_checks=build_checks(settings),
        jobs=[ingest_job, check_job, mark_job, verify_job, gc_job],
        schedules=build_schedules(check_job, mark_job, verify_job, gc_job),
        sensors=[
            *(
                build_discovery_sensor(
                    source.name,
                    f"the source '{source.name}'",
                    interval,
                    sensor_ticks.discover_source(settings, source.name),
                    asset_keys.source(source.name),
                )
                for source in settings.sources
            ),
            build_discovery_sensor(
                "named_folders",
                "the folders that were named on the command line",
                interval,
                sensor_ticks.discover_remembered(settings),
            ),
            build_backlog_sensor(
                ingest_job,
                asset_keys.STEP,
                settings.runs.parallel,
                settings.runs.documents,
                sensor_ticks.count_due(settings),
                sensor_ticks.why_not,
            ),
            build_interrupted_runs_sensor(sensor_ticks.sweep(settings)),
        ],
        resources={
            "document_state": DocumentStateStoreResource(uri=settings.state_uri, base=str(settings.base)),
            "artifacts": ArtifactStoreResource(uri=settings.artifact_uri, base=str(settings.base)),
        },
        # Documents stream from stage to stage inside one step; a process a step would only cost.
        executor=dg.in_process_executor,
    )


@dg.definitions
def definitions() -> dg.Definitions:
    """What `workspace.yaml` names."""
    return build_definitions(load_settings())
