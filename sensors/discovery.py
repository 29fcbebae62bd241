"""The sensor that lists a source. What it finds becomes due in the state; the backlog sensor starts the runs."""

from collections.abc import Callable

import dagster as dg

from sensors.plan import Discovered, describe


def build_discovery_sensor(
    name: str, what: str, interval_seconds: int, discover: Callable[[dg.DagsterInstance], Discovered]
) -> dg.SensorDefinition:
    """A sensor that calls `discover` at every tick.

    Args:
        name: which source, as part of the sensor's name.
        what: the source in words.
        interval_seconds: least time between two listings.
        discover: lists and writes the records; raises SourceError if the source cannot be listed.
    """

    @dg.sensor(
        name=f"discovery__{name.replace('-', '_').replace('.', '_')}",
        description=f"Lists {what}: new, changed and vanished documents become due.",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def discovery(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return dg.SkipReason(describe(discover(context.instance)))

    return discovery
