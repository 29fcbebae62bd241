"""A job as it goes on, as server-sent events: its stage, its progress, what became of each document, its end."""

import asyncio
import time
from collections.abc import AsyncIterator

from ingest_assets.api.job_shapes import job_shape, result_shape
from ingest_assets.api.shapes import Shape
from resources.document_state.ingest_jobs import IngestJob
from resources.document_state.job_records import IngestJobs

MEDIA_TYPE = "text/event-stream"
_BETWEEN_LOOKS = 0.5
_BETWEEN_SIGNS_OF_LIFE = 15.0
_AT_ONCE = 200


async def events_of(jobs: IngestJobs, job_id: str, org_id: str, after: str) -> AsyncIterator[str]:
    """Everything of a job from now on, and the results behind the part `after`; ends with the job.

    An event's id is the last part of results that was sent, so a client that comes back with it misses none.
    """
    before: IngestJob | None = None
    stage: tuple[object, ...] = ()
    quiet_since = time.monotonic()
    while True:
        job = await jobs.get(job_id)
        if (job.status, job.stage) != stage:
            stage = (job.status, job.stage)
            yield _event("stage", job_shape(job), after)
        if job != before:
            results, last = await jobs.results_behind(job_id, after, _AT_ONCE)
            while results:
                for number, result in enumerate(results, 1):
                    if result.belongs_to(org_id):
                        yield _event("outcome", result_shape(result), last if number == len(results) else after)
                after = last
                results, last = await jobs.results_behind(job_id, after, _AT_ONCE)
            yield _event("progress", job_shape(job), after)
            before, quiet_since = job, time.monotonic()
        if job.is_terminal:
            yield _event("end", job_shape(job), after)
            return
        if time.monotonic() - quiet_since > _BETWEEN_SIGNS_OF_LIFE:
            quiet_since = time.monotonic()
            yield ": still there\n\n"
        await asyncio.sleep(_BETWEEN_LOOKS)


def _event(name: str, data: Shape, event_id: str) -> str:
    return f"event: {name}\nid: {event_id}\ndata: {data.model_dump_json(by_alias=True)}\n\n"
