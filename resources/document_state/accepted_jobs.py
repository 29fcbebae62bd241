"""Jobs that one process accepts and another one does: queued, handed over, begun or called off.

Whoever is named as a job's owner answers for it: if that process is dead, the sweep ends the job. So there is no moment
in which nobody does.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime

import msgspec

from resources.document_state.ingest_jobs import IngestJob, JobStatus
from resources.document_state.job_records import IngestJobs
from resources.document_state.process_identity import ProcessIdentity, this_process


class JobBegunError(Exception):
    """Another process does the job."""


class AcceptedJobs:
    """The way of a job from one process to another."""

    def __init__(self, jobs: IngestJobs) -> None:
        self._jobs = jobs

    async def accept(self, job: IngestJob, pages: Sequence[Sequence[str]]) -> tuple[IngestJob, bool]:
        """A job that another process is going to do, and whether it is new: else it is the one of its id, unchanged.

        Two requests that come at once may have found different documents. Each keeps its pages under a name of its own,
        and the header that comes first says which count.
        """
        new = msgspec.structs.replace(
            job, n_pages=len(pages), n_listed=sum(map(len, pages)), status=JobStatus.QUEUED, pages_id=uuid.uuid4().hex
        )
        if await self._jobs.store(new, pages):
            return new, True
        await self._jobs.forget_pages(new)
        return await self._jobs.get(job.job_id), False

    async def hand_over(self, job_id: str, process: ProcessIdentity) -> None:
        """A process was started to do a job: from now on it answers for it, also if it dies before it begins."""
        await self._jobs.change(
            job_id,
            lambda job: job if job.status is not JobStatus.QUEUED else msgspec.structs.replace(job, owner=process),
        )

    async def begin(self, job_id: str) -> IngestJob:
        """This process does a job from now on, unless that is over already, or somebody does it.

        Raises:
            UnknownJobError: no job has this id.
            JobBegunError: another process does it.
        """
        begun = await self._jobs.change(
            job_id,
            lambda job: (
                msgspec.structs.replace(job, owner=this_process(), status=JobStatus.RUNNING)
                if job.status is JobStatus.QUEUED
                else job
            ),
        )
        if not begun.is_terminal and begun.owner != this_process():
            raise JobBegunError(f"Job '{job_id}' is being done by another process.")
        return begun

    async def call_off(self, job_id: str, now: datetime, why: str) -> IngestJob:
        """End a job that nobody has begun; another one stays as it is."""
        ended = await self._jobs.change(
            job_id,
            lambda job: (
                msgspec.structs.replace(job, status=JobStatus.FAILED, completed_at=now, error_message=why)
                if job.status is JobStatus.QUEUED
                else job
            ),
        )
        return await self._jobs.get(ended.job_id)
