"""What a pull run shows, how it counts, and how it goes on after it was stopped."""

import signal

import dagster as dg
import pytest
from dagster._core.errors import DagsterExecutionInterruptedError

from ingest_assets import asset_keys
from ingest_assets.engine.progress import Milestone, Onlooker
from ingest_assets.jobs import INGEST
from resources.document_state.model import Status
from tests.dagster_ui.project import ALL, DEFAULT, EXTRACTED

SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE
MANY = {f"note-{number}.txt": f"Note {number} says what was seen on day {number}." for number in range(12)}


def test_a_run_tells_of_each_document_and_which_failed(project):
    """Partitions of a run without partition tags are green or red too, and the failure lists document and reason."""
    project.write("broken.pdf", b"%PDF-1.7 no more than this")
    run = project.ingest()
    broken = project.key("broken.pdf")
    good = set(project.partitions()) - {broken}
    assert run.status is FAILURE
    assert project.statuses(EXTRACTED) == {"failed": {broken}, "materialized": good}
    assert project.statuses(DEFAULT) == {"unmaterialized": {broken}, "materialized": good}
    (failure,) = project.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    told = failure.dagster_event.step_failure_data.user_failure_data
    assert told.description == "1 of 4 documents failed (1 malformed). The others are done."
    assert "| broken.pdf | malformed |" in told.metadata["failed documents"].value


def test_a_run_is_tagged_with_its_kind_and_its_result(project):
    """The list of runs says what each was about without opening it."""
    tags = project.ingest().tags
    assert (tags["ingest/kind"], tags["ingest/result"]) == ("pull", "3 succeeded")
    assert project.pull().tags["ingest/result"] == "nothing was due"
    chosen = project.pull(document_ids=[project.key("tide.md")])
    assert (chosen.tags["ingest/kind"], chosen.tags["ingest/result"]) == ("list", "1 unchanged")


@pytest.mark.parametrize(
    ("fail_run_on", "with_good", "expected"),
    [
        ("any", True, FAILURE),
        ("all", True, SUCCESS),
        ("all", False, FAILURE),
        ("none", True, SUCCESS),
        ("none", False, SUCCESS),
    ],
)
def test_when_a_run_counts_as_failed_is_configured(project, fail_run_on, with_good, expected):
    """`fail_run_on`: any failed document fails the run, or only a run in which nothing succeeded, or nothing does."""
    project.configure(fail_run_on=fail_run_on)
    project.write("broken.txt", b"")
    if not with_good:
        for file in project.folder.glob("[!b]*"):
            file.unlink()
    assert project.ingest().status is expected
    assert project.doc("broken.txt").extraction.status is Status.FAILED


def test_skipped_documents_leave_the_partition_set(project):
    """A type nobody reads is no missing partition, and other content brings it back."""
    project.write("photo.jpg", b"\xff\xd8\xff\xe0" + bytes(200))
    run = project.ingest()
    assert run.status is SUCCESS
    assert run.tags["ingest/result"] == "3 succeeded, 1 skipped"
    key = project.key("photo.jpg")
    assert key not in project.partitions()
    assert set(project.statuses(EXTRACTED)) == {"materialized"}
    project.write("photo.jpg", "This is text after all, whatever it is called.")
    project.ingest()
    assert key in project.partitions()


def test_a_cancelled_run_gives_its_documents_back_and_the_next_goes_on(project):
    """What the run had finished stays finished; what it held is PENDING at no attempt's cost, free for anyone."""
    project.configure(group=2)
    for name, text in MANY.items():
        project.write(name, text)
    project.discover()

    class CancelAtTheFourth(Onlooker):
        """As the UI does: the run is marked, then its process gets a signal."""

        done = 0

        def advances(self, milestone: Milestone) -> None:
            self.done += milestone is Milestone.DONE
            if milestone is Milestone.DONE and self.done == 4:
                (run,) = project.instance.get_runs(limit=1)
                project.instance.report_run_canceling(run)
                signal.raise_signal(signal.SIGTERM)

    job = project.definitions(CancelAtTheFourth()).resolve_job_def(INGEST)
    with pytest.raises(DagsterExecutionInterruptedError):
        job.execute_in_process(instance=project.instance)
    (run,) = project.instance.get_runs(limit=1)
    assert run.status is dg.DagsterRunStatus.CANCELED
    assert "ingest/status" not in run.tags  # not "running": nobody could take that back
    docs = project.docs()
    pending = [doc for doc in docs if doc.extraction.status is Status.PENDING]
    assert 0 < len(pending) < len(docs)
    assert all(doc.claim is None for doc in docs)
    assert all(doc.extraction.attempts == 0 for doc in docs)
    assert project.pull().tags["ingest/result"] == f"{len(pending)} succeeded"
    assert all(doc.build.status is Status.COMPLETED for doc in project.docs())


def test_a_failed_run_executed_again_does_what_is_due(project):
    """Re-execution has the run's configuration: due documents; those that succeeded are not touched."""
    project.write("broken.txt", b"")
    project.discover()
    failed = project.launch(INGEST)
    before = project.doc("ferry.md")
    project.write("broken.txt", "It has words now.")
    project.discover()
    again = project.reexecute(failed)
    assert again.status is SUCCESS
    assert again.parent_run_id == failed.run_id
    assert again.tags["ingest/result"] == "1 succeeded"
    assert project.doc("broken.txt").extraction.status is Status.COMPLETED
    assert project.doc("ferry.md") == before
    assert "failed" not in project.statuses(EXTRACTED)


def test_a_document_gone_from_its_source_leaves_the_stores_then_the_partitions(project):
    """Vanished means: no store holds it, then no partition shows it; the record remembers."""
    project.ingest()
    key = project.key("tide.md")
    (project.folder / "tide.md").unlink()
    assert project.discover().startswith("0 new, 0 changed, 1 vanished")
    assert key in project.partitions()
    assert project.pull().tags["ingest/result"] == "1 removed"
    assert key not in project.partitions()
    assert key not in project.in_store("default") | project.in_store("archive")
    assert project.doc("tide.md").presence.value == "deleted"


def test_a_key_that_comes_back_is_built_again(project):
    """The same name is the same partition; until it is built its record says PENDING, whatever Dagster remembers."""
    project.ingest()
    text = (project.folder / "tide.md").read_text()
    key = project.key("tide.md")
    (project.folder / "tide.md").unlink()
    project.ingest()
    project.write("tide.md", text)
    project.discover()
    assert key in project.partitions()
    assert project.doc("tide.md").extraction.status is Status.PENDING
    project.pull()
    assert project.in_store("default") == set(project.partitions())


def test_no_document_that_is_up_to_date_shows_as_unsynced(project):
    """Not after a run, a new source or a new default embedder; a store that names another embedder does show it."""
    query = """query($asset: [String!]!, $key: String) {
      assetNodeOrError(assetKey: {path: $asset}) { ... on AssetNode { staleCauses(partition: $key) { reason } } } }"""
    project.ingest()
    key = project.key("tide.md")

    def causes() -> list[list[dict]]:
        asked = [project.ask(query, asset=asset.path, key=key) for asset in ALL]
        return [answer["assetNodeOrError"]["staleCauses"] for answer in asked]

    assert causes() == [[], [], []]
    project.configure('[[sources]]\nname = "more"\nuri = "more"\n')
    assert causes() == [[], [], []]
    config = project.root / "ingest.toml"
    config.write_text(config.read_text().replace('default_embedder = "hash"', 'default_embedder = "wordllama"'))
    assert causes() == [[], [], []]
    config.write_text(config.read_text().replace('slug = "default"', 'slug = "default"\nembedder = "wordllama"'))
    assert causes() == [[], [{"reason": "has a new code version"}], []]


def test_a_source_page_tells_of_the_last_listing_that_found_something(project):
    """The source's asset gets an observation with the counts, and none while nothing changes."""
    project.ingest()
    project.discover()
    (seen,) = project.instance.fetch_observations(asset_keys.source("docs"), limit=10).records
    metadata = seen.event_log_entry.asset_observation.metadata
    assert {name: value.value for name, value in metadata.items()} == {
        "new": 3,
        "changed": 0,
        "vanished": 0,
        "unchanged": 0,
        "left_out": 0,
    }
