"""`ingest jobs ID --follow`: shown while it runs, ended when it has."""

import multiprocessing
from pathlib import Path

import pytest

from resources.clock import utc_now
from resources.document_state.ingest_jobs import BatchEstimate, DocumentResult, JobStage, Outcome
from resources.document_state.job_records import IngestJobs
from resources.document_state.take_up import Mode
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.worker_process import create_job
from tests.end_to_end.project import Project

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project whose state has been made."""
    made = Project(tmp_path)
    assert made.run("state", "create").returncode == 0
    return made


@pytest.fixture
async def jobs(project: Project):
    """The project's jobs."""
    backend = SqliteBackend(project.root / ".ingest" / "state.db")
    yield IngestJobs(backend)
    await backend.close()


async def two_documents(jobs: IngestJobs) -> str:
    """A job of this process."""
    pages = [["a", "b"]]
    made = await jobs.create(
        pages, scope_id="default", user_id="me", mode=Mode.RESUME, now=utc_now(), n_unchanged=0, n_busy=0
    )
    return made.job_id


async def test_follows_until_the_end(project: Project, jobs: IngestJobs) -> None:
    """Stage and progress are told as they change, the documents at the end, and success is exit code 0."""
    job_id = await two_documents(jobs)
    following = project.start("jobs", job_id, "--follow")
    assert following.stderr.readline() == "Running: 0 of 2 documents\n"
    await jobs.enter(job_id, JobStage.EXTRACTING)
    await jobs.record(job_id, "r/0", [DocumentResult("a", "docs:a.md", "a.md", Outcome.SUCCEEDED, "run")])
    told = [following.stderr.readline()]
    if told[0] != "Extracting: 1 of 2 documents\n":  # the look may have come between the two
        told.append(following.stderr.readline())
    assert told[-1] == "Extracting: 1 of 2 documents\n"
    await jobs.record(job_id, "r/1", [DocumentResult("b", "docs:b.md", "b.md", Outcome.SUCCEEDED, "run")])
    await jobs.settle(job_id, utc_now())
    out, err = following.communicate(timeout=30)
    assert following.returncode == 0
    assert err.splitlines()[-1] == "Succeeded: 2 of 2 documents"
    assert "a.md" in out
    assert "b.md" in out


async def test_exit_code_is_how_it_ended(project: Project, jobs: IngestJobs) -> None:
    """A job that was held back ends with 3, one with failures with 1; without an id there is nothing to follow."""
    blocked = await two_documents(jobs)
    await jobs.estimate(blocked, "r/0", BatchEstimate(2_500_000, "over the ceiling"))
    await jobs.settle(blocked, utc_now())
    shown = project.json("jobs", blocked, "--follow", code=3)
    assert (shown["status"], shown["estimated_cost"], shown["error_message"]) == ("blocked", 2.5, "over the ceiling")
    failed = await two_documents(jobs)
    await jobs.settle(failed, utc_now())
    assert project.run("jobs", failed, "--follow").returncode == 1
    assert project.run("jobs", failed).returncode == 0
    nothing = project.run("jobs", "--follow")
    assert nothing.returncode == 2
    assert "--follow needs the id of a job" in nothing.stderr


async def test_job_of_a_dead_process_ends(project: Project, jobs: IngestJobs) -> None:
    """Nobody follows a job for ever whose process died: it is settled, and says so."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=create_job, args=(project.root / ".ingest" / "state.db", theirs))
    process.start()
    job_id = ours.recv()
    process.join()
    done = project.run("jobs", job_id, "--follow")
    assert done.returncode == 1
    assert "died" in done.stdout
