"""What a job is at, as its record says it while the work goes on."""

import asyncio

import dagster as dg

from ingest_assets.engine.progress import UNWATCHED
from ingest_assets.runs import job_progress
from ingest_assets.runs.job_progress import JobProgress
from resources.clock import utc_now
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.job_records import IngestJobs
from resources.document_state.take_up import Mode
from resources.records.memory_backend import MemoryBackend


class SlowBackend(MemoryBackend):
    """Answers as late as a server far away."""

    async def _write(self, *arguments):
        await asyncio.sleep(0.05)
        return await super()._write(*arguments)


@dg.job
def nothing():
    """A job whose runs can have tags."""


async def test_a_stage_entered_while_another_is_told_is_told_next(monkeypatch):
    """The work may stay at it for long, and enter no other that would make up for it."""
    monkeypatch.setattr(job_progress, "_PAUSE_SECONDS", 0.01)
    jobs = IngestJobs(SlowBackend())
    job = await jobs.create(
        [["a"]], scope_id="s", user_id="u", mode=Mode.INCREMENTAL, now=utc_now(), n_unchanged=0, n_busy=0
    )
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(nothing)
        async with JobProgress(instance, run.run_id, jobs, job.job_id, UNWATCHED) as progress:
            progress.enters(JobStage.ESTIMATING)
            await asyncio.sleep(0.03)
            progress.enters(JobStage.WAITING)
            async with asyncio.timeout(20):
                while (await jobs.get(job.job_id)).stage is not JobStage.WAITING:  # noqa: ASYNC110 - only the record says
                    await asyncio.sleep(0.01)
