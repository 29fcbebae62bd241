"""Has accepted jobs done: each by a process of its own that outlives the server, as the command line does them."""

import asyncio
import subprocess

from ingest_assets.api.own_process import command, environment, open_log
from ingest_assets.components import Components
from ingest_assets.settings import Settings
from resources.clock import utc_now
from resources.document_state.ingest_jobs import IngestJob
from resources.document_state.process_identity import process_of

_BETWEEN_LOOKS = 1.0


class Launcher:
    """Starts processes for jobs, and sees to it that a job whose process died ends truthfully."""

    def __init__(self, settings: Settings, components: Components) -> None:
        self._settings = settings
        self._jobs = components.jobs
        self._accepted = components.accepted_jobs
        self._processes: list[subprocess.Popen[bytes]] = []

    async def launch(self, job: IngestJob) -> None:
        """Start a job's process. Dying anywhere in here leaves a queued job with a dead owner: the sweep settles it."""
        try:
            process = self._start(job.job_id)
        except OSError as error:
            await self._jobs.settle(job.job_id, utc_now(), f"No process could be started: {error.strerror}.")
            return
        self._processes.append(process)
        await self._accepted.hand_over(job.job_id, process_of(process.pid))

    async def watch(self) -> None:
        """Until cancelled: settle the jobs whose processes ended without doing it."""
        while True:
            await asyncio.sleep(_BETWEEN_LOOKS)
            running = [process for process in self._processes if process.poll() is None]
            if len(running) < len(self._processes):
                self._processes = running
                await self._jobs.settle_orphans(utc_now())

    def _start(self, job_id: str) -> "subprocess.Popen[bytes]":
        with open_log(self._settings, f"job-{job_id}") as output:
            return subprocess.Popen(  # noqa: S603 - our own command
                command("run-job", job_id),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(self._settings),
                start_new_session=True,
            )
