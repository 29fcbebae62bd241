"""What the UI's Materialize and Backfill do."""

import dagster as dg

from resources.document_state.model import Status
from tests.dagster_ui.project import ALL, ARCHIVE, DEFAULT, EXTRACTED, Project

SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


def materializations(project: Project, run: dg.DagsterRun) -> set[tuple[str, str]]:
    """The asset and partition of each materialization of a run."""
    found = project.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    return {(e.dagster_event.asset_key.to_user_string(), e.dagster_event.partition) for e in found}


def test_a_range_of_unchanged_documents_is_reported_again_and_costs_nothing(project):
    """A document that is complete keeps its record byte for byte, and each of its assets gets its materialization."""
    project.ingest()
    before = project.docs()
    keys = project.partitions()
    run = project.materialize(*keys)
    assert run.status is SUCCESS
    assert project.docs() == before
    assert materializations(project, run) == {(asset.to_user_string(), key) for asset in ALL for key in keys}
    assert run.tags["ingest/result"] == "3 unchanged"


def test_the_force_tag_extracts_again(project):
    """`ingest/force: true` in the tags of a run does again what nothing has changed of."""
    project.ingest()
    key = project.key("ferry.md")
    run = project.materialize(key, tags={"ingest/force": "true"})
    assert run.status is SUCCESS
    assert project.doc("ferry.md").extraction.run_id == run.run_id
    assert project.doc("tide.md").extraction.run_id != run.run_id


def test_one_store_alone_extracts_first_and_builds_only_there(project):
    """`built/default` of a document nobody extracted yet extracts it; the other store stays without it."""
    project.discover()
    key = project.key("ferry.md")
    run = project.materialize(key, assets=[DEFAULT])
    assert run.status is SUCCESS
    assert project.doc("ferry.md").extraction.status is Status.COMPLETED
    assert project.in_store("default") == {key}
    assert project.in_store("archive") == set()
    assert project.statuses(DEFAULT)["materialized"] == {key}
    assert key in project.statuses(ARCHIVE)["unmaterialized"]


def test_extraction_alone_builds_nowhere(project):
    """`extracted` without a store leaves the build to the next pull run."""
    project.discover()
    run = project.materialize(project.key("ferry.md"), assets=[EXTRACTED])
    assert run.status is SUCCESS
    assert project.in_store("default") == set()
    assert project.doc("ferry.md").build.status is Status.PENDING
    project.pull()
    assert project.doc("ferry.md").build.status is Status.COMPLETED


def test_a_failed_document_is_red_and_its_neighbours_are_green(project):
    """The run of a range fails after every document was attempted, and each partition shows what became of it."""
    project.write("broken.pdf", b"%PDF-1.7 no more than this")
    project.discover()
    keys = project.partitions()
    run = project.materialize(*keys)
    broken = project.key("broken.pdf")
    assert run.status is FAILURE
    assert project.statuses(EXTRACTED) == {"failed": {broken}, "materialized": set(keys) - {broken}}
    assert run.tags["ingest/kind"] == "range"
    assert run.tags["ingest/result"] == "3 succeeded, 1 failed"


def test_a_failed_document_materialized_again_after_its_repair_turns_green(project):
    """What the person put right is taken up by the partition's own Materialize, without waiting for a listing."""
    project.write("broken.txt", b"")
    project.ingest()
    project.write("broken.txt", "It has words now.")
    key = project.key("broken.txt")
    assert project.statuses(EXTRACTED)["failed"] == {key}
    assert project.materialize(key).status is SUCCESS
    assert "failed" not in project.statuses(EXTRACTED)


def test_a_partition_added_by_hand_fails_as_unknown_document(project):
    """A key no source ever listed fails, says so and what to do, and writes no record."""
    project.ingest()
    project.instance.add_dynamic_partitions("documents", ["by-hand"])
    run = project.materialize("by-hand")
    assert run.status is FAILURE
    assert project.statuses(EXTRACTED)["failed"] == {"by-hand"}
    assert len(project.docs()) == 3
    (failure,) = project.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    told = failure.dagster_event.step_failure_data.user_failure_data
    assert told.description == "1 of 1 documents failed (1 unknown_document)."
    assert "Remove the partition, or put the file in." in told.metadata["failed documents"].value


def test_a_backfill_of_a_range_is_one_run(project):
    """Dagster's default would be a run for each document."""
    project.discover()
    status, runs = project.backfill(ALL, project.partitions())
    assert (status, len(runs), runs[0].status) == ("COMPLETED_SUCCESS", 1, SUCCESS)
    assert all(len(project.statuses(asset)["materialized"]) == 3 for asset in ALL)


def test_a_backfill_of_scattered_documents_ends_with_each_of_them_done(project):
    """Two partitions with one between them are two runs of the backfill, and the one between is left alone."""
    project.discover()
    first, between, last = project.partitions()
    status, runs = project.backfill(ALL, [first, last])
    assert (status, len(runs)) == ("COMPLETED_SUCCESS", 2)
    assert project.statuses(DEFAULT) == {"materialized": {first, last}, "unmaterialized": {between}}


def test_a_backfill_of_one_store_ends_in_success(project):
    """A backfill waits for a materialization of each partition: unchanged documents are reported too."""
    project.ingest()
    before = project.docs()
    status, _ = project.backfill([ARCHIVE], project.partitions())
    assert status == "COMPLETED_SUCCESS"
    assert project.docs() == before


def test_a_backfill_leaves_the_checks_out(project):
    """Dagster plans the checks of its assets with each of its runs, but they look at all documents."""
    project.ingest()
    _, (run,) = project.backfill(ALL, project.partitions())
    evaluated = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    assert not project.instance.all_logs(run.run_id, of_type=evaluated)


def test_a_backfill_with_a_failed_document_ends_as_failed(project):
    """The backfill's page shows the failure; the others of its range are done."""
    project.write("broken.txt", b"")
    project.discover()
    status, _ = project.backfill(ALL, project.partitions())
    assert status == "COMPLETED_FAILED"
    assert len(project.statuses(DEFAULT)["materialized"]) == 3
