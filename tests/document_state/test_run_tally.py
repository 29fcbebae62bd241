"""Runs are counted once, whoever counts them, and seconds never go down."""

import asyncio

import pytest

from ingest_assets.runs.stage_clock import StageClock
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.process_identity import this_process
from resources.document_state.run_tally import KIND, RunOutcome, RunTally
from resources.document_state.workers import WorkerRecord
from resources.records.backend import BackendCorruptError
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from tests.document_state.documents import NOW


async def test_a_run_counts_once() -> None:
    """Added again, also as having ended otherwise, it changes nothing: the first word stands."""
    tally = RunTally(MemoryBackend())
    await tally.add("a", RunOutcome.PARTIAL, {"parsing": 1.5})
    await tally.add("a", RunOutcome.DIED, {"parsing": 9.0})
    await tally.add("b", RunOutcome.PARTIAL, {"parsing": 0.5, "persisting": 2.0})
    found = await tally.read()
    assert found.runs == {"partial": 2}
    assert found.seconds == {"parsing": 2.0, "persisting": 2.0}


async def test_runs_that_end_at_once_all_count() -> None:
    """Of many that write the one record at the same moment none is lost, and the record stays small."""
    tally = RunTally(MemoryBackend())
    await asyncio.gather(*(tally.add(str(n), RunOutcome.SUCCEEDED, {"parsing": 1.0}) for n in range(300)))
    found = await tally.read()
    assert found.runs == {"succeeded": 300}
    assert found.seconds == {"parsing": 300.0}
    assert len(found.counted) == 200


async def test_a_run_under_way_counts_up_to_its_last_beat() -> None:
    """Its worker's seconds are added until the tally has the run: from then on they are in there."""
    tally = RunTally(MemoryBackend())
    worker = WorkerRecord("w", "a", this_process(), NOW, stage_seconds={"parsing": 3.0})
    assert (await tally.read()).seconds_with([worker]) == {"parsing": 3.0}
    await tally.add("a", RunOutcome.SUCCEEDED, {"parsing": 4.0})
    assert (await tally.read()).seconds_with([worker]) == {"parsing": 4.0}


async def test_a_damaged_tally_stops_no_run() -> None:
    """A run ends as it would, and recovery goes on; nothing is written over what a person may restore."""
    backend = MemoryBackend()
    await backend.compare_and_set(KIND, [Write("all", b"{damaged", None)])
    tally = RunTally(backend)
    await tally.add("a", RunOutcome.SUCCEEDED, {})
    record = await backend.read(KIND, "all")
    assert record is not None
    assert record.value == b"{damaged"
    with pytest.raises(BackendCorruptError):
        await tally.read()


def test_a_run_is_at_one_stage_at_a_time() -> None:
    """The seconds add up to the time since the first stage, whatever the order in which batches enter them."""
    now = [10.0]
    clock = StageClock(lambda: now[0])
    assert clock.seconds() == {}
    for stage, seconds in [(JobStage.PARSING, 1.0), (JobStage.PERSISTING, 2.0), (JobStage.PARSING, 0.5)]:
        clock.enters(stage)
        now[0] += seconds
    assert clock.seconds() == clock.seconds() == {"parsing": 1.5, "persisting": 2.0}
