"""Dagster's own databases may be out of reach too; a person is told so in a sentence."""

from pathlib import Path

import pytest

from ingest_assets.dagster_databases import DagsterDatabaseError
from ingest_assets.runs.dagster_instance import open_instance
from ingest_assets.settings import load_settings
from tests.end_to_end.project import Project


def test_opening_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is no file is named by what the driver says, without the statement."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.chdir(Project(tmp_path).root)
    (tmp_path / ".ingest" / "dagster" / "history" / "runs.db").mkdir(parents=True)
    with pytest.raises(
        DagsterDatabaseError, match=r"databases could not be used: unable to open.* and its disk"
    ) as raised:
        open_instance(load_settings())
    assert "SELECT" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_a_run(tmp_path: Path) -> None:
    """A run that cannot tell of its events ends with a sentence, and the next one does what is left."""
    project = Project(tmp_path)
    project.write("a.md", "Words.")
    project.json("run")
    index = tmp_path / ".ingest" / "dagster" / "history" / "runs" / "index.db"
    aside = index.rename(index.with_name("aside"))
    index.mkdir()
    project.write("b.md", "More words.")
    done = project.run("run")
    assert done.returncode == 1
    assert "Dagster's databases could not be used: unable to open" in done.stderr
    assert "Traceback" not in done.stderr
    index.rmdir()
    aside.rename(index)
    assert project.json("run", "--mode", "resume")["n_failed"] == 0
    assert project.json("status")["build"] == {"COMPLETED": 2}
