"""The rows a batch of events is in Dagster's event log, made by Dagster or, ten times cheaper, without its objects."""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from time import time
from typing import NamedTuple

import dagster as dg
from dagster._core.storage.event_log import SqlEventLogStorage

from ingest_assets.event_log.event_entries import DATA_VERSION, PartitionMaterialized, RunStep, materialized_entry
from ingest_assets.event_log.event_texts import Shape, spliced

_logger = logging.getLogger(__name__)


class EventRow(NamedTuple):
    """A row of `event_logs`; its id is the database's to give. The fields are the columns.

    The time is written as SQLAlchemy writes it on SQLite, and as PostgreSQL reads it.
    """

    run_id: str
    event: str
    dagster_event_type: str
    timestamp: str
    step_key: str | None
    asset_key: str
    partition: str | None


class EventRows(NamedTuple):
    """A batch as rows.

    Attributes:
        rows: of `event_logs`, in order.
        tags: of `asset_event_tags`: the place in `rows`, the key, the value.
        latest: the place in `rows` and the event of each asset's last one of each type: storing these in `asset_keys`
            leaves it as storing all would.
    """

    rows: Sequence[EventRow]
    tags: Sequence[tuple[int, str, str]]
    latest: Sequence[tuple[int, dg.EventLogEntry]]


def rows_of_entries(storage: SqlEventLogStorage, entries: Sequence[dg.EventLogEntry]) -> EventRows:
    """The rows Dagster makes of asset events."""
    rows = [_row_of(storage, entry) for entry in entries]
    tags = [(place, *tag) for place, entry in enumerate(entries) for tag in _tags_of(storage, entry)]
    return EventRows(rows, tags, [(place, entries[place]) for place in _latest_of_each_asset(rows)])


def rows_of_materialized(
    storage: SqlEventLogStorage, step: RunStep, events: Sequence[PartitionMaterialized]
) -> EventRows | None:
    """The rows of documents that were materialized, without a Dagster object for each.

    One event of each shape is made by Dagster as well, and the rows are given only if its columns and tags are equal
    byte for byte: after an upgrade that changes something a batch is stored the slow way, and the log says so.

    Returns:
        None if a batch can or must be made by Dagster.
    """
    asset_keys = {key: key.to_string() for key in {event.asset_key for event in events}}
    rows, timestamps, sample = [], [], dict[Shape, int]()
    for place, event in enumerate(events):
        timestamp = time()
        made = spliced(step, event, timestamp)
        if made is None:
            return None
        sample[made[0]] = place  # the last of a shape, so that each asset's last is among them
        timestamps.append(timestamp)
        rows.append(
            EventRow(
                step.run_id,
                made[1],
                dg.DagsterEventType.ASSET_MATERIALIZATION.value,
                _written(datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None)),
                step.step_key,
                asset_keys[event.asset_key],
                event.partition,
            )
        )
    entries = {place: materialized_entry(step, events[place], timestamps[place]) for place in sample.values()}
    for place, entry in entries.items():
        tags = [(DATA_VERSION, events[place].data_version)]
        if _row_of(storage, entry) != rows[place] or _tags_of(storage, entry) != tags:
            _logger.warning("Dagster stores events of %s in another way now: slower.", rows[place].asset_key)
            return None
    return EventRows(
        rows,
        [(place, DATA_VERSION, event.data_version) for place, event in enumerate(events)],
        [(place, entries[place]) for place in _latest_of_each_asset(rows)],
    )


def _row_of(storage: SqlEventLogStorage, entry: dg.EventLogEntry) -> EventRow:
    columns = storage._event_to_row(entry)  # noqa: SLF001
    return EventRow(**{**columns, "timestamp": _written(columns["timestamp"])})


def _written(time_in_utc: datetime) -> str:
    return time_in_utc.isoformat(" ", "microseconds")


def _tags_of(storage: SqlEventLogStorage, entry: dg.EventLogEntry) -> list[tuple[str, str]]:
    return list(storage._tags_for_asset_event(entry).items())  # noqa: SLF001


def _latest_of_each_asset(rows: Sequence[EventRow]) -> Iterator[int]:
    latest: dict[str, dict[str, int]] = {}
    for place, row in enumerate(rows):
        latest.setdefault(row.asset_key, {})[row.dagster_event_type] = place
    for places in latest.values():
        yield from sorted(places.values())
