"""Removes jobs whose record is damaged, once they have been so for as long as a job is kept.

When such a job ended nobody can read. So it is noted when its damage was first seen, and it goes when the record has
not been written for all that time. One that had not ended, as the mark beside its value says, may be somebody's work:
it stays.
"""

from datetime import datetime, timedelta

import msgspec

from resources.document_state.job_records import IngestJobs
from resources.records.backend import RecordBackend
from resources.records.decoding import readable
from resources.records.record import Record, Write

KIND = "damaged_job"


class Sighting(msgspec.Struct, frozen=True):
    """When a job's record was first seen damaged, and which state of it that was."""

    write_id: str
    seen_at: datetime


async def remove_damaged_jobs(
    jobs: IngestJobs, backend: RecordBackend, now: datetime, keep: timedelta, *, dry_run: bool = False
) -> int:
    """Remove those that were first seen damaged so long ago; gives how many. Others that are damaged are noted."""
    n_old = 0
    sightings = {record.key: record async for record in backend.list_records(KIND)}
    for damaged in await jobs.damaged_and_ended():
        noted = sightings.pop(damaged.key, None)
        seen_at = _seen_at(backend, noted, damaged)
        is_old = seen_at is not None and seen_at <= now - keep
        n_old += is_old
        if dry_run:
            continue
        if is_old:
            await jobs.remove_damaged(damaged)
        sighting = None if is_old else msgspec.json.encode(Sighting(damaged.stamp.write_id, seen_at or now))
        await backend.compare_and_set(KIND, [Write(damaged.key, sighting, noted.stamp if noted else None)])
    if not dry_run:  # these were mended since, or are gone
        await backend.compare_and_set(KIND, [Write(key, None, noted.stamp) for key, noted in sightings.items()])
    return n_old


def _seen_at(backend: RecordBackend, noted: Record | None, damaged: Record) -> datetime | None:
    """When this state of a job was first seen; None: it was not yet, or that cannot be read."""
    sighting = noted and readable(backend.uri, KIND, noted, Sighting, "It is noted anew.")
    return sighting.seen_at if sighting and sighting.write_id == damaged.stamp.write_id else None
