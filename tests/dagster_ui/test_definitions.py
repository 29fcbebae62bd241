"""What is loaded, from where, and that loading it does nothing."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

import ingest_assets
from ingest_assets import asset_keys
from ingest_assets.event_log.event_log_storage import BatchSqliteEventLogStorage
from ingest_assets.jobs import CHECK, MARK
from ingest_assets.runs.dagster_instance import open_instance
from ingest_assets.settings import load_settings
from tests.dagster_ui.project import ALL, DEFAULT, EXTRACTED

REPOSITORY = Path(ingest_assets.__file__).resolve().parent.parent
# Notes what a process opens for writing, connects to or creates while the definitions load.
WATCHED_LOAD = """
import json, os, sys
seen = []
def watch(event, args):
    writes = event == "open" and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and "/dev/" not in str(args[0])
    if writes or event in ("socket.connect", "socket.getaddrinfo", "sqlite3.connect", "os.mkdir", "os.rename"):
        seen.append(f"{event} {args[:2]}")
import dagster
from ingest_assets.settings import load_settings
sys.addaudithook(watch)
from ingest_assets.definitions import build_definitions
build_definitions(load_settings()).resolve_job_def("ingest_documents")
print(json.dumps(seen))
"""


def test_loading_touches_neither_disk_nor_network(project):
    """Nothing is written, created or connected to; not even the data folder is made."""
    before = sorted(project.root.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED_LOAD], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == []
    assert sorted(project.root.rglob("*")) == before
    assert not (project.root / ".ingest").exists()


@pytest.mark.parametrize("name", ["resources", "sensors", "ingest_assets"])
def test_our_names_are_ours(name):
    """PyPI has packages of these names; what is imported is this repository."""
    found = importlib.util.find_spec(name)
    assert Path(found.origin).resolve() == REPOSITORY / name / "__init__.py"


def test_the_map_stays_short():
    """definitions.py is what a newcomer reads first: under 80 lines."""
    assert len((REPOSITORY / "ingest_assets" / "definitions.py").read_text().splitlines()) < 80


def test_sensors_are_on_and_the_schedules_are_off(project):
    """Whoever starts Dagster needs to turn nothing on; the checks of everything wait until somebody wants them."""
    repository = project.definitions().get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "backlog",
        "discovery__docs",
        "discovery__named_folders",
        "interrupted_runs",
    }
    assert all(sensor.default_status is dg.DefaultSensorStatus.RUNNING for sensor in repository.sensor_defs)
    assert {schedule.name for schedule in repository.schedule_defs} == {
        "check_documents_daily",
        "mark_stale_daily",
        "verify_weekly",
        "gc_daily",
    }
    assert all(s.default_status is dg.DefaultScheduleStatus.STOPPED for s in repository.schedule_defs)


def test_lineage_runs_from_the_sources_through_extraction_into_each_store(project):
    """source/<name> → extracted → built/<store>: groups, kinds, owners; a code version where no record decides it."""
    graph = project.definitions().resolve_asset_graph()
    assert graph.get(EXTRACTED).parent_keys == {asset_keys.source("docs")}
    assert graph.get(DEFAULT).parent_keys == {EXTRACTED}
    groups = {key.to_user_string(): graph.get(key).group_name for key in graph.get_all_asset_keys()}
    assert groups == {
        "source/docs": "sources",
        "extracted": "documents",
        "built/default": "stores",
        "built/archive": "stores",
    }
    assert all(graph.get(key).kinds and graph.get(key).owners for key in ALL)
    assert [bool(graph.get(key).code_version) for key in ALL] == [True, False, False]


def test_the_check_job_runs_every_check_over_all_documents(project):
    """Its run has no partition, and every check is evaluated and passes after an ingest."""
    project.ingest()
    job = project.definitions().resolve_job_def(CHECK)
    result = job.execute_in_process(instance=project.instance)
    checks = {(e.asset_key.to_user_string(), e.check_name): e.passed for e in result.get_asset_check_evaluations()}
    assert checks == {
        ("extracted", "every_document_has_chunks"): True,
        ("extracted", "pages_have_text"): True,
        ("extracted", "within_spend_ceiling"): True,
        ("built/default", "store_matches_state"): True,
        ("built/default", "nothing_stale"): True,
        ("built/archive", "store_matches_state"): True,
        ("built/archive", "nothing_stale"): True,
    }


def test_a_store_that_lost_a_document_fails_its_check(project):
    """`store_matches_state` names the document whose link says Ingested and which the store does not hold."""
    project.ingest()
    (project.root / ".ingest" / "stores" / "default.duckdb").unlink()
    job = project.definitions().resolve_job_def(CHECK)
    result = job.execute_in_process(instance=project.instance)
    failed = [e for e in result.get_asset_check_evaluations() if not e.passed]
    assert [(e.asset_key, e.check_name) for e in failed] == [(DEFAULT, "store_matches_state")]
    assert failed[0].metadata["wrong"].value == 3


def test_a_damaged_record_fails_the_checks_that_cannot_read_it(project):
    """Each looks at the others all the same, and names the damaged one among what is wrong."""
    project.ingest()
    damaged = project.damage("ferry.md")
    result = project.definitions().resolve_job_def(CHECK).execute_in_process(instance=project.instance)
    failed = [e for e in result.get_asset_check_evaluations() if not e.passed]
    names = ["every_document_has_chunks", "pages_have_text", "store_matches_state", "store_matches_state"]
    assert sorted(e.check_name for e in failed) == names
    for evaluation in failed:
        assert evaluation.metadata["examples"].value == [damaged]
        assert evaluation.metadata["documents"].value == (0 if evaluation.check_name == "pages_have_text" else 2)


def test_the_mark_job_marks_what_the_configuration_made_stale(project):
    """Run from the UI, it marks the links, after which the check names the part that differs and no run is due."""
    project.ingest()
    project.configure("[chunking]\nsize = 500\n")
    job = project.definitions().resolve_job_def(MARK)
    assert job.execute_in_process(instance=project.instance).success
    assert {link.state.value for doc in project.docs() for link in doc.links.values()} == {"Stale"}
    assert {doc.build.status.value for doc in project.docs()} == {"COMPLETED"}
    checks = project.definitions().resolve_job_def(CHECK).execute_in_process(instance=project.instance)
    stale = [e for e in checks.get_asset_check_evaluations() if not e.passed]
    assert {e.check_name for e in stale} == {"nothing_stale"}
    assert [e.metadata["stale"].value for e in stale] == [{"chunker": 3}, {"chunker": 3}]


def test_the_template_makes_an_instance_with_our_event_storage(project, monkeypatch):
    """The command line and `make dev` open the same instance, from the template, in the data folder."""
    monkeypatch.delenv("DAGSTER_HOME")
    settings = load_settings({"INGEST_CONFIG": str(project.root / "ingest.toml")})
    with open_instance(settings) as instance:
        assert Path(instance.root_directory) == project.root / ".ingest" / "dagster"
        assert isinstance(instance.event_log_storage, BatchSqliteEventLogStorage)
