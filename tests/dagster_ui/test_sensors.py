"""The sensors, evaluated on a real instance as the daemon does."""

import asyncio
from datetime import timedelta

import dagster as dg
import msgspec
import pytest

from ingest_assets.components import Components
from ingest_assets.jobs import INGEST
from ingest_assets.requests.request import Request, Watcher
from ingest_assets.upkeep.correcting import edit_chunks, read_chunks
from ingest_assets.upkeep.edits import Edit
from resources.artifact_store.corrections import Signature
from resources.clock import utc_now
from resources.document_source.document_source import SourceError
from resources.document_state import transitions, workers
from resources.document_state.model import DocStatus, LinkState, Status
from resources.document_state.process_identity import ProcessIdentity, this_process
from resources.document_state.take_up import Mode
from sensors.backlog import PULL_TAG
from tests.dagster_ui.project import EXTRACTED, Project
from tests.document_state.wall_clock import WallClock


def dead_process() -> ProcessIdentity:
    """A process of this machine that is certainly gone: no process has so high a number."""
    return msgspec.structs.replace(this_process(), pid=2**22 + 1)


def test_discovery_makes_new_documents_due_and_says_so(project):
    """A tick starts no run: it writes records and partitions, and its skip reason counts what it found."""
    assert project.discover() == "3 new, 0 changed, 0 vanished, 0 unchanged."
    assert len(project.partitions()) == 3
    assert all(doc.extraction.status is Status.PENDING for doc in project.docs())
    assert project.discover() == "0 new, 0 changed, 0 vanished, 3 unchanged."


def test_discovery_of_a_source_that_cannot_be_listed_is_a_failed_tick(project):
    """An outage is an error, never "nothing there": no document vanishes by it."""
    project.ingest()
    project.folder.rename(project.root / "away")
    with pytest.raises(SourceError):
        project.discover()
    assert all(doc.presence.value == "present" for doc in project.docs())


def test_backlog_requests_as_many_runs_as_the_documents_need(project):
    """Never more than `parallel`, and never one for nothing."""
    project.configure(parallel=3, documents=2)
    assert project.tick("backlog").skip_message == "Nothing is due."
    project.discover()
    requests = project.tick("backlog").run_requests
    assert [request.run_config for request in requests] == [{"ops": {"ingest": {"config": {"limit": 2}}}}] * 2
    assert all(request.tags.items() >= PULL_TAG.items() for request in requests)


def test_backlog_counts_the_runs_that_are_alive(project):
    """Runs that wait or work are not doubled; those that ended do not count."""
    project.discover()
    job = project.definitions().resolve_job_def(INGEST)
    alive = project.instance.create_run_for_job(job, tags=PULL_TAG, status=dg.DagsterRunStatus.STARTING)
    assert project.tick("backlog").skip_message == "Due: 3 documents or more. At it: 1 pull run."
    project.instance.report_run_canceled(alive)
    assert len(project.tick("backlog").run_requests) == 1


def test_backlog_starts_no_run_for_a_damaged_record(project):
    """No run can do its document, which stays the longest due: without others it would be asked for for ever."""
    project.configure(parallel=3, documents=2)
    project.discover()
    project.damage("ferry.md")
    assert len(project.tick("backlog").run_requests) == 1
    for name in ("harbour.txt", "tide.md"):
        project.damage(name)
    assert project.tick("backlog").skip_message == "Nothing is due."


def be_paid(project: Project, more: str = "") -> None:
    """Make the project's extractor a language model."""
    project.configure(more, group=1)
    file = project.root / "ingest.toml"
    file.write_text(f'extractor = "openai:mine"\n{file.read_text()}')


def test_backlog_starts_no_run_that_would_fail_at_once(project):
    """With an extractor that cannot work as it is configured no run is started, and the tick says what to write."""
    project.discover()
    be_paid(project)
    assert '[prices."openai:mine"]' in project.tick("backlog").skip_message
    be_paid(project, '[prices."openai:mine"]\ninput = 1\noutput = 1\n')
    assert len(project.tick("backlog").run_requests) == 1


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ("extractor = [", "is no valid TOML"),
        ("extracter = 'none'", "unknown key 'extracter'"),
        ("extractor = 'nobody'", "Unknown extractor 'nobody'"),
        ("extractor = 'openai:mine'", '[prices."openai:mine"]'),
        ("stores = [{ slug = 'default', kind = 'shelf' }]", "unknown store kind 'shelf'"),
        ("stores = [{ slug = 'default', embedder = 'nobody' }]", "Unknown embedder 'nobody'"),
    ],
)
def test_backlog_starts_no_run_while_ingest_toml_is_wrong(project, edited, told):
    """A mistake made while Dagster is running is told by the tick, and is not tried out by run after run."""
    project.discover()
    right = (project.root / "ingest.toml").read_text()
    (project.root / "ingest.toml").write_text(f"{edited}\n")
    assert told in project.tick("backlog").skip_message
    (project.root / "ingest.toml").write_text(right)
    assert len(project.tick("backlog").run_requests) == 1


def test_backlog_waits_after_a_ceiling_held_a_run_back(project):
    """While documents are due and the last pull run was refused just now, the next one is not started."""
    project.discover()
    be_paid(project, '[prices."openai:mine"]\ninput = 1\noutput = 1\n[spend]\nper_day_usd = 0.000001\n')
    run = project.pull(limit=10)
    assert (run.status, run.tags["ingest/status"]) == (dg.DagsterRunStatus.SUCCESS, "blocked")
    assert {doc.extraction.status for doc in project.docs()} == {Status.PENDING}
    assert "held the last run back" in project.tick("backlog").skip_message


def test_the_sensors_alone_ingest_everything(project):
    """Discovery, then the runs the backlog asks for, then nothing is due: no hand is needed."""
    project.discover()
    for request in project.tick("backlog").run_requests:
        project.pull(**request.run_config["ops"]["ingest"]["config"])
    assert project.tick("backlog").skip_message == "Nothing is due."
    assert set(project.statuses(EXTRACTED)) == {"materialized"}


def test_interrupted_runs_takes_up_what_a_killed_run_left(project):
    """Its documents are due again, its run is failed, and what it had published is reported to Dagster."""
    project.ingest()
    project.write("late.txt", "It came late.")
    project.discover()
    job = project.definitions().resolve_job_def(INGEST)
    run = project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    asyncio.run(hold(project, project.doc("late.txt"), dead_process(), run.run_id))
    assert project.doc("late.txt").extraction.status is Status.IN_PROGRESS
    told = project.tick("interrupted_runs").skip_message
    assert told == (
        "Dead workers: 1. Documents due again: 1. Events reported for them: 0. Runs ended: 1. Jobs settled: 0."
    )
    assert project.doc("late.txt").extraction.status is Status.PENDING
    assert project.doc("late.txt").claim is None
    ended = project.instance.get_run_by_id(run.run_id)
    assert (ended.status, ended.tags["ingest/result"]) == (dg.DagsterRunStatus.FAILURE, "its process died")
    assert project.tick("interrupted_runs").skip_message == "No worker has died."
    assert runs_of(project) == {"succeeded": 1, "died": 1}
    assert project.pull().tags["ingest/result"] == "1 succeeded"


@pytest.mark.parametrize("by", ["sensors", "command line"])
def test_what_was_listed_under_a_clock_far_ahead_is_taken_up(project, monkeypatch, by):
    """When the clock is right again, the sensors find it due, and so does the command line without them."""
    clock = WallClock(monkeypatch)
    clock.step(timedelta(days=400))
    project.discover()
    clock.step(timedelta(days=-400))
    assert project.tick("backlog").skip_message == "Nothing is due."
    if by == "sensors":
        project.tick("interrupted_runs")
    else:
        asyncio.run(take_up_as_command_line(project))
    assert project.tick("backlog").run_requests
    project.pull()
    assert all(doc.extraction.status is Status.COMPLETED for doc in project.docs())


def test_interrupted_runs_leaves_living_workers_alone(project):
    """A worker of a living process whose lease is not over keeps its documents, at every tick."""
    project.discover()
    asyncio.run(hold(project, project.doc("tide.md"), this_process()))
    for _ in range(2):
        assert project.tick("interrupted_runs").skip_message == "No worker has died."
    assert project.doc("tide.md").claim is not None


async def take_up_as_command_line(project: Project) -> None:
    """What `ingest run` does before it looks for what is due."""
    async with Components(project.settings) as components:
        await Request(components, Mode.INCREMENTAL, Watcher())._recover()


def runs_of(project: Project) -> dict[str, int]:
    """How many runs ended how."""

    async def read() -> dict[str, int]:
        async with Components(project.settings) as components:
            return (await components.run_tally.read()).runs

    return asyncio.run(read())


async def hold(project: Project, doc: DocStatus, process: ProcessIdentity, run_id: str = "run") -> None:
    """Leave the records as a run leaves them that is at work on a document, in this process or in a dead one."""
    async with Components(project.settings) as components:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "this_process", lambda: process)
            worker = await workers.Worker.register(components.backend, run_id, utc_now())
        await worker.hold([doc.document_id])
        claimed = transitions.claimed(doc, worker.worker_id, run_id, utc_now(), extract=True)
        assert await components.state.set_status(doc.document_id, claimed, expected=doc)


async def correct(project: Project, document_id: str) -> None:
    """Somebody corrects the first chunk of a document."""
    async with Components(project.settings) as components:
        _, artifact = await read_chunks(components, document_id)
        edits = [Edit(1, artifact.chunks[0].chunk_id, "Corrected.")]
        await edit_chunks(components, document_id, edits, Signature("ann", utc_now()))


def test_no_sensor_takes_up_a_correction(project):
    """Three ticks of each sensor start nothing for a corrected document; it is Stale in both stores as it was."""
    project.ingest()
    asyncio.run(correct(project, project.key("tide.md")))
    for _ in range(3):
        assert project.discover() == "0 new, 0 changed, 0 vanished, 3 unchanged."
        assert project.tick("backlog").skip_message == "Nothing is due."
        assert project.tick("interrupted_runs").skip_message == "No worker has died."
    links = {doc.source_uri: {link.state for link in doc.links.values()} for doc in project.docs()}
    assert links.pop("docs:tide.md") == {LinkState.STALE}
    assert list(links.values()) == [{LinkState.INGESTED}] * 2


def test_a_backfill_reports_a_correction_and_pays_nothing(project):
    """Materialized in the UI, `extracted` gets the corrected content's version; stores stay stale without force."""
    project.ingest()
    before = project.doc("tide.md").artifact_hash
    asyncio.run(correct(project, project.key("tide.md")))
    project.materialize(project.key("tide.md"), assets=(EXTRACTED,))
    [event] = project.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=EXTRACTED, asset_partitions=[project.key("tide.md")]), limit=1
    ).records
    doc = project.doc("tide.md")
    assert event.asset_materialization.tags["dagster/data_version"] == doc.artifact_hash != before
    assert {link.state for link in doc.links.values()} == {LinkState.STALE}
