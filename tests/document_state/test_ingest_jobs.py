"""Jobs: one request each, counted while it runs."""

import multiprocessing
from datetime import timedelta
from itertools import product

import msgspec
import pytest

from resources.document_state.ingest_jobs import (
    BatchEstimate,
    DocumentResult,
    JobStage,
    JobStatus,
    Outcome,
    UnknownJobError,
)
from resources.document_state.job_records import IngestJobs
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Mode
from resources.records.backend import BackendCorruptError
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.documents import NOW
from tests.document_state.worker_process import create_job

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(params=["memory", "sqlite"])
async def jobs(request, tmp_path):
    backend = MemoryBackend() if request.param == "memory" else SqliteBackend(tmp_path / "state.db")
    yield IngestJobs(backend)
    await backend.close()


async def create(jobs, *pages, now=NOW, n_unchanged=0, n_busy=0):
    """A job over pages of documents."""
    return await jobs.create(
        pages, scope_id="default", user_id="me", mode=Mode.RESUME, now=now, n_unchanged=n_unchanged, n_busy=n_busy
    )


def results(*outcomes: Outcome, first: int = 0) -> list[DocumentResult]:
    """A result of each outcome."""
    return [
        DocumentResult(f"d{first + i}", f"docs:d{i}", f"d{i}", outcome, "run", Reason.MALFORMED, "detail", 1, 2, 0.5)
        for i, outcome in enumerate(outcomes)
    ]


class TestJob:
    async def test_new_job(self, jobs):
        """A job is running, knows its pages, and has everything still to do."""
        job = await create(jobs, ["a", "b"], ["c"], n_unchanged=5, n_busy=1)
        assert await jobs.get(job.job_id) == job
        assert (job.status, job.n_pages, job.n_requested, job.n_pending) == (JobStatus.RUNNING, 2, 3, 3)
        assert (job.n_unchanged, job.n_busy, job.is_terminal) == (5, 1, False)
        assert [await jobs.documents(job.job_id, page) for page in range(2)] == [["a", "b"], ["c"]]

    async def test_unknown_job_and_page(self, jobs):
        """What there is not is named."""
        for call in (jobs.get("x"), jobs.settle("x", NOW), jobs.add_run("x", "run")):
            with pytest.raises(UnknownJobError, match="no job 'x'"):
                await call
        job = await create(jobs, ["a"])
        with pytest.raises(UnknownJobError, match="no page 1"):
            await jobs.documents(job.job_id, 1)

    async def test_counts(self, jobs):
        """Counts are the results so far; requested is their sum with what is pending."""
        job = await create(jobs, [f"d{i}" for i in range(10)], n_unchanged=100, n_busy=10)
        await jobs.record(
            job.job_id, "run/0", results(Outcome.SUCCEEDED, Outcome.REMOVED, Outcome.FAILED, Outcome.SKIPPED)
        )
        await jobs.record(job.job_id, "run/1", results(Outcome.UNCHANGED, Outcome.BUSY, Outcome.PENDING, first=4))
        job = await jobs.get(job.job_id)
        assert (job.n_succeeded, job.n_failed, job.n_skipped, job.n_pending) == (2, 1, 1, 4)
        assert (job.n_unchanged, job.n_busy) == (101, 11)
        assert job.n_requested == job.n_succeeded + job.n_failed + job.n_skipped + job.n_pending == 8

    async def test_part_recorded_twice_counts_once(self, jobs):
        """A run that died after it recorded and is repeated changes no count."""
        job = await create(jobs, ["d0", "d1"])
        for _ in range(2):
            await jobs.record(job.job_id, "run/0", results(Outcome.SUCCEEDED))
        assert (await jobs.get(job.job_id)).n_succeeded == 1
        assert len(await jobs.results(job.job_id)) == 1

    async def test_equal_parts_count_each(self, jobs):
        """Parts with the same counts are counted as often as there are."""
        job = await create(jobs, [f"d{i}" for i in range(6)])
        for part in range(3):
            await jobs.record(job.job_id, f"run/{part}", results(Outcome.SUCCEEDED, Outcome.FAILED, first=2 * part))
        job = await jobs.get(job.job_id)
        assert (job.n_succeeded, job.n_failed, job.n_pending) == (3, 3, 0)

    async def test_results_come_back_whole_and_in_order(self, jobs):
        """Results are read as they were recorded, by part."""
        job = await create(jobs, ["d0", "d1"])
        second, first = results(Outcome.FAILED, first=1), results(Outcome.SUCCEEDED)
        await jobs.record(job.job_id, "run/00001", second)
        await jobs.record(job.job_id, "run/00000", first)
        assert await jobs.results(job.job_id) == first + second

    async def test_jobs_are_apart(self, jobs):
        """Results of one job are not another's."""
        one, two = await create(jobs, ["d0"]), await create(jobs, ["d0"])
        await jobs.record(one.job_id, "run/0", results(Outcome.SUCCEEDED))
        assert (await jobs.get(two.job_id)).n_succeeded == 0
        assert await jobs.results(two.job_id) == []

    async def test_runs(self, jobs):
        """A job remembers its runs in order."""
        job = await create(jobs, ["a"])
        for run in ("one", "two"):
            await jobs.add_run(job.job_id, run)
        assert (await jobs.get(job.job_id)).run_ids == ("one", "two")

    async def test_recent(self, jobs):
        """The newest jobs come first, with their counts."""
        created = [await create(jobs, ["d0"], now=NOW + timedelta(seconds=i)) for i in range(4)]
        await jobs.record(created[3].job_id, "run/0", results(Outcome.SUCCEEDED))
        recent = await jobs.recent(2)
        assert [job.job_id for job in recent] == [created[3].job_id, created[2].job_id]
        assert recent[0].n_succeeded == 1


class TestSettle:
    @pytest.mark.parametrize(
        ("n_succeeded", "n_failed", "n_skipped", "n_pending"), list(product((0, 1), (0, 1), (0, 1), (0, 1)))
    )
    async def test_rule(self, n_succeeded, n_failed, n_skipped, n_pending):
        """All done or skipped: succeeded; no success: failed; else, with a failure or something left: partial."""
        jobs = IngestJobs(MemoryBackend())
        total = n_succeeded + n_failed + n_skipped + n_pending
        job = await create(jobs, [f"d{i}" for i in range(total)])
        outcomes = [Outcome.SUCCEEDED] * n_succeeded + [Outcome.FAILED] * n_failed + [Outcome.SKIPPED] * n_skipped
        await jobs.record(job.job_id, "run/0", results(*outcomes))
        settled = await jobs.settle(job.job_id, NOW)
        expected = JobStatus.PARTIAL
        if not n_failed and not n_pending:
            expected = JobStatus.SUCCEEDED
        elif not n_succeeded:
            expected = JobStatus.FAILED
        assert settled.status is expected
        assert settled.is_terminal
        assert settled.n_pending == n_pending

    async def test_settling_again_changes_nothing(self, jobs):
        """The first end of a job is its end."""
        job = await create(jobs, ["d0"])
        await jobs.record(job.job_id, "run/0", results(Outcome.SUCCEEDED))
        first = await jobs.settle(job.job_id, NOW)
        again = await jobs.settle(job.job_id, NOW + timedelta(hours=1), "late")
        assert again == first
        assert (again.completed_at, again.error_message) == (NOW, "")

    async def test_only_what_was_requested_counts(self, jobs):
        """A job whose documents were all complete or busy has nothing to fail at."""
        job = await create(jobs, ["d0", "d1"])
        await jobs.record(job.job_id, "run/0", results(Outcome.UNCHANGED, Outcome.BUSY))
        settled = await jobs.settle(job.job_id, NOW)
        assert (settled.status, settled.n_requested) == (JobStatus.SUCCEEDED, 0)


class TestStages:
    async def test_started_when_the_first_run_began(self, jobs):
        """A job starts once, whatever runs work for it, and not after it has ended."""
        job = await create(jobs, ["a"])
        assert (job.started_at, job.stage) == (None, None)
        await jobs.start(job.job_id, NOW)
        await jobs.start(job.job_id, NOW + timedelta(hours=1))
        assert (await jobs.get(job.job_id)).started_at == NOW
        late = await create(jobs, ["a"])
        await jobs.settle(late.job_id, NOW)
        await jobs.start(late.job_id, NOW)
        assert (await jobs.get(late.job_id)).started_at is None

    async def test_stage_is_the_latest_until_the_end(self, jobs):
        """The stage follows the run; a job that has ended stays where it was."""
        job = await create(jobs, ["a"])
        for stage in JobStage:
            await jobs.enter(job.job_id, stage)
            assert (await jobs.get(job.job_id)).stage is stage
        await jobs.settle(job.job_id, NOW)
        await jobs.enter(job.job_id, JobStage.PARSING)
        assert (await jobs.get(job.job_id)).stage is JobStage.PERSISTING


class TestEstimates:
    async def test_estimates_add_up_and_count_once(self, jobs):
        """What the batches may cost is the job's estimate; a batch that is estimated again keeps its first word."""
        job = await create(jobs, ["a", "b"])
        for part, micro_usd in (("run/0", 5), ("run/1", 5), ("run/1", 7), ("run/2", 1_000_000)):
            await jobs.estimate(job.job_id, part, BatchEstimate(micro_usd))
        job = await jobs.get(job.job_id)
        assert (job.estimated_micro_usd, job.n_blocked_batches) == (1_000_010, 0)

    async def test_one_blocked_batch_blocks_the_job(self, jobs):
        """A job with a batch that was held back ends blocked, says why, and counts what was done before."""
        job = await create(jobs, ["d0", "d1"])
        await jobs.estimate(job.job_id, "run/0", BatchEstimate(5))
        await jobs.record(job.job_id, "run/0", results(Outcome.SUCCEEDED))
        await jobs.estimate(job.job_id, "run/1", BatchEstimate(50, "over the ceiling"))
        settled = await jobs.settle(job.job_id, NOW)
        assert (settled.status, settled.error_message) == (JobStatus.BLOCKED, "over the ceiling")
        assert (settled.n_succeeded, settled.n_pending, settled.estimated_micro_usd) == (1, 1, 55)


class TestOrphans:
    async def test_job_of_a_dead_process_is_settled(self, tmp_path):
        """A job whose process died ends with what was done; jobs of the living stay."""
        backend = SqliteBackend(tmp_path / "state.db")
        jobs = IngestJobs(backend)
        mine = await create(jobs, ["a"])
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=create_job, args=(backend.path, theirs))
        process.start()
        orphan = ours.recv()
        process.join()
        await jobs.record(orphan, "run/0", [msgspec.structs.replace(results(Outcome.SUCCEEDED)[0], document_id="a")])
        assert [job.job_id for job in await jobs.orphans()] == [orphan]
        [settled] = await jobs.settle_orphans(NOW)
        assert (settled.job_id, settled.status, settled.n_pending) == (orphan, JobStatus.PARTIAL, 1)
        assert "died" in settled.error_message
        assert await jobs.settle_orphans(NOW) == []
        assert not (await jobs.get(mine.job_id)).is_terminal
        await backend.close()


class TestRemoval:
    async def test_what_ended_long_ago_goes(self, jobs):
        """A job that ended before a time goes with everything that is kept of it; running and later ones stay whole."""
        old, late, running = [await create(jobs, ["a"], ["b"]) for _ in range(3)]
        for job in (old, late, running):
            await jobs.estimate(job.job_id, "run/0", BatchEstimate(5))
            await jobs.record(job.job_id, "run/0", results(Outcome.SUCCEEDED))
        await jobs.settle(old.job_id, NOW)
        await jobs.settle(late.job_id, NOW + timedelta(hours=2))
        [found] = await jobs.ended_before(NOW + timedelta(hours=1))
        assert found.job_id == old.job_id
        await jobs.remove(found)
        kinds = await jobs._backend.list_kinds()
        assert not [kind for kind in kinds if old.job_id in kind]
        with pytest.raises(UnknownJobError):
            await jobs.get(old.job_id)
        for job in (late, running):
            assert ((await jobs.get(job.job_id)).n_succeeded, await jobs.documents(job.job_id, 1)) == (1, ["b"])

    async def test_a_removal_that_was_interrupted(self, jobs):
        """A job whose removal stopped halfway still has its header, so the next one ends it; twice is as once."""
        job = await create(jobs, ["a"])
        await jobs.record(job.job_id, "run/0", results(Outcome.SUCCEEDED))
        job = await jobs.settle(job.job_id, NOW)
        await jobs.forget_pages(job)
        [found] = await jobs.ended_before(NOW + timedelta(hours=1))
        for _ in range(2):
            await jobs.remove(found)
        assert await jobs._backend.list_kinds() == []


class TestDamaged:
    """A record that was damaged from outside stops nobody but who asks for its job."""

    async def test_header(self, jobs, caplog):
        """Lists, counts and the sweep leave the job out and name it; whoever asks for it is told."""
        whole = await create(jobs, ["a"])
        await jobs._backend.compare_and_set("job", [Write("broken", b"{", None, label="running", open=True)])
        assert [job.job_id for job in await jobs.under_way()] == [whole.job_id]
        assert [job.job_id for job in await jobs.recent(5)] == [whole.job_id]
        assert await jobs.count_by_status("default") == {JobStatus.RUNNING: 1}
        assert await jobs.settle_orphans(NOW) == await jobs.ended_before(NOW) == []
        assert "job 'broken'" in caplog.text
        with pytest.raises(BackendCorruptError, match="broken"):
            await jobs.get("broken")

    @pytest.mark.parametrize("label", ["", "[1]", '["x",0,0,0,0]'])
    async def test_counts_of_a_part(self, jobs, caplog, label):
        """Its documents count as not done, and the job is ended like any other."""
        job = await create(jobs, ["a", "b"])
        await jobs.record(job.job_id, "1", results(Outcome.SUCCEEDED))
        for kind in ("job_result", "job_estimate"):
            await jobs._backend.compare_and_set(f"{kind}/{job.job_id}", [Write("2/000", b"[]", None, label=label)])
        ended = await jobs.settle(job.job_id, NOW)
        assert (ended.status, ended.n_succeeded, ended.n_pending) == (JobStatus.PARTIAL, 1, 1)
        assert job.job_id in caplog.text
