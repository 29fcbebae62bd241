"""What a running job is at, and what its batches may cost: in the job's record, and as tags of its run."""

import asyncio
import contextlib
import time
from typing import Self

import dagster as dg

from ingest_assets.engine.progress import Milestone, Onlooker
from ingest_assets.runs.run_tags import STAGE_TAG
from ingest_assets.runs.stage_clock import StageClock
from resources.document_state.ingest_jobs import BatchEstimate, JobStage
from resources.document_state.job_records import IngestJobs

_PAUSE_SECONDS = 1.0


class JobProgress:
    """The engine's progress for a run of Dagster: at most a write a second, whatever the batches do.

    Used as an asynchronous context manager around the work.

    Attributes:
        clock: how long the run was at each stage.
        n_estimates: how many batches the gate was asked about.
        refusal: why the last one that was held back was, or "".
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        run_id: str,
        jobs: IngestJobs,
        job_id: str | None,
        onlooker: Onlooker,
    ) -> None:
        self._instance = instance
        self._run_id = run_id
        self._jobs = jobs
        self._job_id = job_id
        self._onlooker = onlooker
        self._stage: JobStage | None = None
        self._told: JobStage | None = None
        self._told_at = -_PAUSE_SECONDS
        self._telling: asyncio.Task[None] | None = None
        self.clock = StageClock()
        self.n_estimates = 0
        self.refusal = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._telling is not None:
            self._telling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._telling

    def reaches(self, milestone: Milestone) -> None:
        """See Progress."""
        self._onlooker.advances(milestone)

    def enters(self, stage: JobStage) -> None:
        """See Progress."""
        self._stage = stage
        self.clock.enters(stage)
        self._onlooker.enters(stage)
        if stage is not self._told and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._tell())

    async def estimated(self, micro_usd: int, refusal: str) -> None:
        """See Progress."""
        self.refusal = refusal or self.refusal
        if self._job_id is not None:
            part = f"{self._run_id}/{self.n_estimates:05d}"
            await self._jobs.estimate(self._job_id, part, BatchEstimate(micro_usd, refusal))
        self.n_estimates += 1

    async def _tell(self) -> None:
        """Tell the stage, and the next one, if it was entered while this one was told: a long one may be the last."""
        while self._stage is not self._told:
            await asyncio.sleep(self._told_at + _PAUSE_SECONDS - time.monotonic())
            stage = self._stage
            if stage is None or stage is self._told:
                return
            self._told, self._told_at = stage, time.monotonic()
            if self._job_id is not None:
                await self._jobs.enter(self._job_id, stage)
            # No status: whoever dies or is cancelled could not take it back, and Dagster shows what is running.
            self._instance.add_run_tags(self._run_id, {STAGE_TAG: stage.value})
