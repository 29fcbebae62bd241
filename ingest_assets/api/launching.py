"""Has accepted jobs done: each by a process of its own that outlives the server, as the command line does them."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from ingest_assets.api.tokens import TOKEN_VARIABLE
from ingest_assets.components import Components
from ingest_assets.settings import Settings
from resources.document_state.document_state_store import utc_now
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
        log = self._settings.data_path / "logs" / f"job-{job_id}.log"
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
            return subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-P", "-m", "ingest_assets.cli", "run-job", job_id],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self._configuration()} | {TOKEN_VARIABLE: ""},
                start_new_session=True,
            )

    def _configuration(self) -> dict[str, str]:
        """The server's own, whatever the working directory is."""
        found: Path | None = self._settings.config_file
        return {"INGEST_CONFIG": str(found)} if found else {}
