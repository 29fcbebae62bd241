"""The sensor that lists a source. What it finds becomes due in the state; the backlog sensor starts the runs."""

from collections.abc import Callable

import dagster as dg

from sensors.discovered import Discovered, describe


def build_discovery_sensor(
    name: str,
    what: str,
    interval_seconds: int,
    discover: Callable[[dg.DagsterInstance], Discovered],
    asset_key: dg.AssetKey | None = None,
) -> dg.SensorDefinition:
    """A sensor that calls `discover` at every tick.

    Args:
        name: which source, as part of the sensor's name.
        what: the source in words.
        interval_seconds: least time between two listings.
        discover: lists and writes the records; raises SourceError if the source cannot be listed.
        asset_key: the source's asset, which is told of every listing that found a change.
    """

    @dg.sensor(
        name=f"discovery__{name.replace('-', '_').replace('.', '_')}",
        description=f"Lists {what}: new, changed and vanished documents become due.",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def discovery(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = discover(context.instance)
        changes = found.new or found.changed or found.vanished
        events = [dg.AssetObservation(asset_key, metadata=_metadata(found))] if asset_key and changes else []
        told = " ".join(map(str, [describe(found), *found.overlaps, found.left_out])).rstrip()
        return dg.SensorResult(skip_reason=told, asset_events=events)

    return discovery


def _metadata(found: Discovered) -> dict[str, int]:
    return {
        "new": len(found.new),
        "changed": len(found.changed),
        "vanished": len(found.vanished),
        "unchanged": found.n_unchanged,
        "left_out": found.left_out.n,
    }
