"""Dagster instances on each event storage: ours and Dagster's on SQLite, Dagster's on PostgreSQL."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.dagster_revisions import read_revisions_once

OURS = "event_log_storage:\n  module: ingest_assets.event_log.event_log_storage\n  class: BatchSqliteEventLogStorage\n"
STORAGES = ("ours", "dagster_sqlite", "postgres")


def instance_in(home: Path, dagster_yaml: str, monkeypatch: pytest.MonkeyPatch) -> dg.DagsterInstance:
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(dagster_yaml + "telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return dg.DagsterInstance.from_config(str(home))


@pytest.fixture(scope="session")
def blank_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DAGSTER_HOME whose SQLite databases exist. Copying it saves each test the half second alembic takes."""
    read_revisions_once()
    home = tmp_path_factory.mktemp("blank") / "home"
    with pytest.MonkeyPatch.context() as monkeypatch, instance_in(home, "", monkeypatch) as instance:
        instance.get_dynamic_partitions("documents")
        instance.all_instigator_state()
    return home


@pytest.fixture(scope="session")
def postgres_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("postgres_home")


@pytest.fixture(params=STORAGES)
def instance(
    request, tmp_path: Path, blank_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """An empty instance on each storage."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        home = request.getfixturevalue("postgres_home")
        made = instance_in(home, f"storage:\n  postgres:\n    postgres_url: {url}\n", monkeypatch)
        made.event_log_storage.wipe()
        made.run_storage.wipe()
    else:
        home = shutil.copytree(blank_home, tmp_path / "home")
        made = instance_in(home, OURS if request.param == "ours" else "", monkeypatch)
    with made:
        yield made
