"""The sensor that keeps pull runs alive while documents are due."""

import math
from collections.abc import Callable

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from resources.clock import utc_now
from resources.counting import counted
from resources.document_state.ingest_jobs import JobStatus
from resources.document_state.retry_policy import HELD_BACK_FOR

PULL_TAG = {"ingest/kind": "pull"}
_HELD_BACK = {**PULL_TAG, "ingest/status": JobStatus.BLOCKED.value}
_ALIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def build_backlog_sensor(
    job: UnresolvedAssetJobDefinition,
    step: str,
    parallel: int,
    documents: int,
    count_due: Callable[[int], int],
    why_not: Callable[[], str],
) -> dg.SensorDefinition:
    """A sensor that starts pull runs.

    A tick that dies loses nothing, because nothing is in the tick: a run claims what is due when it gets there.

    Args:
        job: the job that does documents.
        step: the name of its step.
        parallel: how many pull runs to keep alive.
        documents: the most documents a run claims.
        count_due: how many documents are due, counted up to a limit.
        why_not: why a run would fail before its first document, or "".
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
        if why := why_not():
            return dg.SkipReason(f"Documents are due, and no run is started, for it would fail at once. {why}")
        if _is_held_back(context.instance, job.name):
            minutes = HELD_BACK_FOR.total_seconds() / 60
            return dg.SkipReason(
                f"A ceiling of [spend] held the last run back. The next one is started {minutes:.0f} minutes after it; "
                "`ingest run` does not wait."
            )
        alive = context.instance.get_runs_count(dg.RunsFilter(job_name=job.name, statuses=_ALIVE, tags=PULL_TAG))
        wanted = min(parallel, math.ceil(due / documents)) - alive
        if wanted <= 0:
            return dg.SkipReason(f"Due: {counted(due)} or more. At it: {counted(alive, 'pull run')}.")
        config = {"ops": {step: {"config": {"limit": documents}}}}
        request = dg.RunRequest(run_config=config, tags=PULL_TAG)
        return dg.SensorResult(run_requests=[request] * wanted)

    return backlog


def _is_held_back(instance: dg.DagsterInstance, job_name: str) -> bool:
    """Whether a ceiling held a pull run back just now: the next batch most likely would be refused as well."""
    since = utc_now() - HELD_BACK_FOR
    return bool(instance.get_runs_count(dg.RunsFilter(job_name=job_name, tags=_HELD_BACK, updated_after=since)))
