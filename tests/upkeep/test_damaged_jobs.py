"""Damaged records of jobs go when they have been damaged for as long as a job is kept, and no other does."""

from datetime import UTC, datetime, timedelta

import pytest

from ingest_assets.upkeep.damaged_jobs import KIND, remove_damaged_jobs
from resources.document_state.ingest_jobs import DocumentResult, Outcome
from resources.document_state.job_records import IngestJobs
from resources.document_state.take_up import Mode
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = timedelta(days=90)


@pytest.fixture
def backend():
    return MemoryBackend()


async def damaged(backend, *, ended: bool) -> str:
    """A job with a page and a result, whose header cannot be read any more; its id."""
    jobs = IngestJobs(backend)
    job = await jobs.create(
        [["a"]], scope_id="default", user_id="me", mode=Mode.RESUME, now=NOW, n_unchanged=0, n_busy=0
    )
    await jobs.record(job.job_id, "part", [DocumentResult("a", "docs:a.md", "a.md", Outcome.SUCCEEDED, "run")])
    if ended:
        await jobs.settle(job.job_id, NOW)
    seen = await backend.read("job", job.job_id)
    write = Write(seen.key, b"{", seen.stamp, label=seen.label, open=seen.open)
    assert (await backend.compare_and_set("job", [write]))[0].written
    return job.job_id


async def removed(backend, at: datetime, **options) -> int:
    return await remove_damaged_jobs(IngestJobs(backend), backend, at, KEEP, **options)


async def test_goes_once_it_is_old_enough(backend):
    """It is noted first, and goes with all that is kept of it when nobody has written it for as long as a job stays."""
    await damaged(backend, ended=True)
    assert await removed(backend, NOW, dry_run=True) == 0
    assert await removed(backend, NOW + KEEP) == 0
    assert await removed(backend, NOW + KEEP + timedelta(days=89)) == 0
    assert await removed(backend, NOW + 2 * KEEP, dry_run=True) == 1
    assert await removed(backend, NOW + 2 * KEEP) == 1
    assert await backend.list_kinds() == []


async def test_one_that_was_written_since_is_another(backend):
    """A record that somebody wrote after it was noted is as new as that."""
    job_id = await damaged(backend, ended=True)
    await removed(backend, NOW)
    seen = await backend.read("job", job_id)
    await backend.compare_and_set("job", [Write(job_id, b"[", seen.stamp, label=seen.label)])
    assert await removed(backend, NOW + KEEP) == 0
    assert await removed(backend, NOW + 2 * KEEP) == 1


async def test_one_that_may_be_under_way_stays(backend):
    """Of a job that had not ended nobody can say whether its process lives."""
    job_id = await damaged(backend, ended=False)
    for days in (0, 90, 900):
        assert await removed(backend, NOW + timedelta(days=days)) == 0
    assert await backend.read("job", job_id) is not None
    assert await backend.read(KIND, job_id) is None


async def test_one_that_was_mended_is_forgotten(backend):
    """A job that was put back as it was is no damaged one, and nothing stays of its having been one."""
    job_id = await damaged(backend, ended=True)
    await removed(backend, NOW)
    seen = await backend.read("job", job_id)
    assert await backend.read(KIND, job_id) is not None
    await backend.compare_and_set("job", [Write(job_id, None, seen.stamp)])
    assert await removed(backend, NOW + 2 * KEEP) == 0
    assert await backend.read(KIND, job_id) is None
