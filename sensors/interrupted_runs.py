"""The sensor that takes up what dead workers left."""

from collections.abc import Callable
from typing import Protocol

import dagster as dg


class Swept(Protocol):
    """What a sweep did."""

    workers: int
    documents: int
    events: int
    runs: int
    jobs: int

    def __bool__(self) -> bool: ...


Sweep = Callable[[dg.DagsterInstance, str | None], tuple[Swept, str]]


def build_interrupted_runs_sensor(sweep: Sweep) -> dg.SensorDefinition:
    """A sensor that calls `sweep` at every tick.

    Args:
        sweep: gets the instance and the cursor, in which it keeps when it saw which heartbeat; gives what it did and
            the next cursor.
    """

    @dg.sensor(
        name="interrupted_runs",
        description="Workers whose heartbeat stopped: their documents are due again, what they owed is reported.",
        minimum_interval_seconds=10,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def interrupted_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        done, cursor = sweep(context.instance, context.cursor)
        context.update_cursor(cursor)
        if not done:
            return dg.SkipReason("No worker has died.")
        return dg.SkipReason(
            f"Dead workers: {done.workers}. Documents due again: {done.documents}. Events reported for them: "
            f"{done.events}. Runs ended: {done.runs}. Jobs settled: {done.jobs}."
        )

    return interrupted_runs
