"""A project in a temporary folder, with a Dagster instance made from the template."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from ingest_assets.runs.dagster_home import TEMPLATE
from tests.dagster_revisions import read_revisions_once
from tests.dagster_ui.project import Project


def instance_in(home: Path) -> dg.DagsterInstance:
    """The template's instance, whose runs are executed in this process as soon as they are submitted."""
    config = yaml.safe_load(TEMPLATE.read_text())
    del config["concurrency"]["runs"]  # it implies a queue, and a queue needs a daemon
    config["run_coordinator"] = {"module": "dagster._core.run_coordinator", "class": "DefaultRunCoordinator"}
    config["run_launcher"] = {"module": "tests.dagster_ui.run_launcher", "class": "ThreadRunLauncher"}
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(yaml.safe_dump(config))
    return dg.DagsterInstance.from_config(str(home))


@pytest.fixture(scope="session")
def blank_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DAGSTER_HOME whose databases exist. Copying it saves each test the half second alembic takes."""
    read_revisions_once()
    home = tmp_path_factory.mktemp("blank") / "home"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("DAGSTER_HOME", str(home))
        with instance_in(home) as instance:
            instance.get_dynamic_partitions("documents")
            instance.all_instigator_state()
    return home


@pytest.fixture
def project(tmp_path: Path, blank_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Three good documents that nobody has listed yet."""
    home = shutil.copytree(blank_home, tmp_path / "home")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("INGEST_CONFIG", str(tmp_path / "ingest.toml"))
    with instance_in(home) as instance:
        yield Project(tmp_path, instance)
