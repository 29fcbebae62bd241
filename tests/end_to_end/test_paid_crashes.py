"""Kill -9 at every step of the paid path: nothing lost, nothing doubled, nothing paid twice, and the ledger right."""

from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.end_to_end.dying import Point
from tests.end_to_end.paid_project import bill, config, on_servers, paid_project, spent
from tests.end_to_end.project import Project
from tests.servers.model_server import ModelServer
from tests.servers.sampling import sampled

N = 6
_GATE = "resources.document_state.spend_gate"
_LEDGER = "resources.document_state.spend_ledger"
_CALLING = "resources.extractor.llm.calling"
_EXTRACTION = "ingest_assets.engine.extraction_phase"
_BUILD = "ingest_assets.engine.build_phase"
_REPORTER = "ingest_assets.runs.dagster_reporter"
_JOURNALS = {
    "sqlite": ("resources.artifact_store.paid_results.sqlite_journal", "SqliteJournal"),
    "s3": ("resources.artifact_store.paid_results.s3_journal", "S3Journal"),
}
_ARTIFACTS = {
    "sqlite": ("resources.artifact_store.sqlite_artifact_store", "SqliteArtifactStore"),
    "s3": ("resources.artifact_store.s3_artifact_store", "S3ArtifactStore"),
}
# Two documents are a group, and calls go one by one: the second group, or its first call, or the answer to its last.
POINTS = {
    "before the reservation": Point("before", 2, _LEDGER, "SpendLedger.reserve"),
    "after the reservation": Point("after", 2, _GATE, "SpendGate.admit_in_time"),
    "before the call": Point("before", 3, _CALLING, "Caller.execute"),
    "after the answer arrived": Point("after", 3, _CALLING, "Caller.execute"),
    "after the journal write": Point("after", 4, "journal", "record"),
    "after the log is sealed": Point("after", 2, "journal", "seal"),
    "after the settlement": Point("after", 2, _LEDGER, "SpendLedger.settle"),
    "after the artifact": Point("after", 2, "artifacts", "put_many"),
    "before the publishing write": Point("before", 2, _EXTRACTION, "ExtractionPhase._publish"),
    "after the publishing write": Point("after", 2, _EXTRACTION, "ExtractionPhase._publish"),
    "after the links": Point("after", 2, _BUILD, "BuildPhase.build"),
    "after the events": Point("after", 2, _REPORTER, "DagsterReporter.group_done"),
}
# Where calls had been begun whose answers are not known: the ledger counts them at their worst case.
UNKNOWN = {"before the call", "after the answer arrived"}
# Where an answer is lost with the process, and paid for again.
PAID_AGAIN = {"after the answer arrived": 1}


def crash_at(name: str, artifacts: str) -> Point:
    """A point, in the classes of a project whose artifacts are in `artifacts`."""
    point = POINTS[name]
    if point.module == "journal":
        module, owner = _JOURNALS[artifacts]
    elif point.module == "artifacts":
        module, owner = _ARTIFACTS[artifacts]
    else:
        return point
    return point._replace(module=module, method=f"{owner}.{point.method}")


def entries(project: Project) -> Counter[tuple[str, ...]]:
    """Every entry of the store: document, chunk, kind and text."""
    with duckdb.connect(str(project.root / ".ingest" / "stores" / "default.duckdb"), read_only=True) as store:
        return Counter(store.execute("SELECT document_id, chunk_id, kind, text FROM entries").fetchall())


def check_crash(
    project: Project, model: ModelServer, name: str, point: Point, expected: Counter[tuple[str, ...]]
) -> None:
    """Kill a run at a point, run again, and compare with what a run without a crash says."""
    project.dies(point, "run")
    assert project.json("run", "--mode", "resume")["n_failed"] == 0
    status = project.json("status")
    assert (status["extraction"], status["build"]) == ({"COMPLETED": N}, {"COMPLETED": N})
    assert entries(project) == expected
    assert len(model.calls) == N + PAID_AGAIN.get(name, 0)
    ledger = spent(project)
    known = ledger["micro_usd"] - ledger["assumed_micro_usd"]
    assert known <= bill(model) <= ledger["micro_usd"]
    if name not in UNKNOWN:
        assert (ledger["calls"], known, ledger["assumed_micro_usd"]) == (N, bill(model), 0)


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, ...]]:
    """What the store holds after a run without a crash."""
    from tests.servers.model_server import model_server

    with model_server() as model:
        project = paid_project(tmp_path_factory.mktemp("whole"), model, N)
        project.json("run")
        found = entries(project)
    assert max(found.values()) == 1
    return found


@pytest.mark.parametrize(("state", "name"), sampled(["sqlite"], list(POINTS)))
def test_on_one_machine(
    tmp_path: Path, model: ModelServer, state: str, name: str, expected: Counter[tuple[str, ...]]
) -> None:
    """State and journal in SQLite: each entry once, no call more than was in flight, and no dollar unaccounted for."""
    project = paid_project(tmp_path, model, N)
    project.configure(config(more="[llm]\nconcurrency = 1\n[runs]\ngroup = 2"))
    check_crash(project, model, name, crash_at(name, state), expected)


@pytest.mark.servers
@pytest.mark.parametrize(("state", "name"), sampled(["s3", "dynamodb", "sqlite"], list(POINTS), one_in=4))
def test_on_servers(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    model: ModelServer,
    bucket_name: str,
    state: str,
    name: str,
    expected: Counter[tuple[str, ...]],
) -> None:
    """The same with the journal in S3 and the state in S3, in DynamoDB or in SQLite."""
    project = paid_project(tmp_path, model, N)
    more = on_servers(request, bucket_name, state)
    project.configure(config(more=f"{more}[llm]\nconcurrency = 1\n[runs]\ngroup = 2"))
    assert project.run("state", "create").returncode == 0
    check_crash(project, model, name, crash_at(name, "s3"), expected)
