"""The sensor that keeps pull runs alive while documents are due."""

import math
from collections.abc import Callable

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

PULL_TAG = {"ingest/kind": "pull"}
_ALIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def build_backlog_sensor(
    job: UnresolvedAssetJobDefinition, step: str, parallel: int, documents: int, count_due: Callable[[int], int]
) -> dg.SensorDefinition:
    """A sensor that starts pull runs.

    A tick that dies loses nothing, because nothing is in the tick: a run claims what is due when it gets there.

    Args:
        job: the job that does documents.
        step: the name of its step.
        parallel: how many pull runs to keep alive.
        documents: the most documents a run claims.
        count_due: how many documents are due, counted up to a limit.
    """

    @dg.sensor(
        name="backlog",
        job=job,
        description=f"Keeps up to {parallel} pull runs alive while documents are due.",
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def backlog(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        due = count_due(parallel * documents)
        if not due:
            return dg.SkipReason("Nothing is due.")
        alive = context.instance.get_runs_count(dg.RunsFilter(job_name=job.name, statuses=_ALIVE, tags=PULL_TAG))
        wanted = min(parallel, math.ceil(due / documents)) - alive
        if wanted <= 0:
            return dg.SkipReason(f"At least {due} documents are due; {alive} pull runs are at it.")
        config = {"ops": {step: {"config": {"limit": documents}}}}
        request = dg.RunRequest(run_config=config, tags=PULL_TAG)
        return dg.SensorResult(run_requests=[request] * wanted)

    return backlog
