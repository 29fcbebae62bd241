"""`ingest jobs ID --follow`: how a job goes on, until it has ended."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ingest_assets.cli.jobs import jobs
from ingest_assets.cli.output import Exit, complain, errors
from ingest_assets.components import Components
from resources.clock import utc_now
from resources.counting import counted
from resources.document_state.ingest_jobs import IngestJob, JobStatus

_POLL_SECONDS = 1.0
EXIT_OF = {
    JobStatus.SUCCEEDED: Exit.DONE,
    JobStatus.PARTIAL: Exit.FAILED,
    JobStatus.FAILED: Exit.FAILED,
    JobStatus.BLOCKED: Exit.BLOCKED,
}


async def follow(components: Components, job_id: str, as_json: bool) -> int:
    """Show a job's stage and progress while it runs, then what became of it; the exit code says how it ended.

    A job whose process died is settled here, so that nobody waits for it for ever.
    """
    with _shown(quiet=as_json) as show:
        while not (job := await components.jobs.get(job_id)).is_terminal:
            show(job)
            await asyncio.sleep(_POLL_SECONDS)
            await components.jobs.settle_orphans(utc_now())
        show(job)
    await jobs(components, job_id, as_json)
    return EXIT_OF[job.status]


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Callable[[IngestJob], None]]:
    """A bar on the terminal; where there is none, a sentence for each change; nothing with `quiet`."""
    if quiet:
        yield lambda _: None
    elif not errors.is_terminal:
        yield _Sentences()
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=errors) as bar:
            task = bar.add_task("Waiting", total=None)
            yield lambda job: bar.update(
                task, description=_what(job), total=job.n_requested, completed=job.n_requested - job.n_pending
            )


class _Sentences:
    """Tells what has changed since the last time."""

    def __init__(self) -> None:
        self._told = ""

    def __call__(self, job: IngestJob) -> None:
        sentence = f"{_what(job)}: {job.n_requested - job.n_pending} of {counted(job.n_requested)}"
        if sentence != self._told:
            complain(sentence)
            self._told = sentence


def _what(job: IngestJob) -> str:
    """What a job is at, in a word."""
    return (job.stage or job.status).capitalize() if not job.is_terminal else job.status.capitalize()
