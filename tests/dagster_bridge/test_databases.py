"""Dagster's own databases may be out of reach too; a person is told so in a sentence."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as db

from ingest_assets.components import Components
from ingest_assets.dagster_databases import DagsterDatabaseError
from ingest_assets.partitions import DagsterPartitions
from ingest_assets.requests.request import Request, Watcher
from ingest_assets.runs.dagster_home import is_missing
from ingest_assets.runs.dagster_instance import open_instance
from ingest_assets.runs.dagster_reporter import DagsterReporter
from ingest_assets.settings import load_settings
from resources.document_state.take_up import Mode
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


def test_a_fault_within_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes up while documents are done is told as plainly as what comes up before, and names no statement."""
    project = Project(tmp_path)
    project.write("a.md", "Words.")
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.chdir(project.root)

    async def group_done(*_: object) -> None:
        with db.create_engine("sqlite://").connect() as connection:
            connection.exec_driver_sql("SELECT 'a value' FROM nowhere")

    monkeypatch.setattr(DagsterReporter, "group_done", group_done)
    with pytest.raises(DagsterDatabaseError, match=r"not be used: no such table: nowhere\. .* its disk") as raised:
        Request(Components(load_settings()), Mode.INCREMENTAL, Watcher()).run([])
    assert "a value" not in str(raised.value)


class KilledError(BaseException):
    """Stands for a kill: nobody handles it."""


def make(root: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int = -1) -> int:
    """Let a project open its instance for the first time; give the number of statements, or die before one of them."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.chdir(root)
    n_statements = 0

    def count(*_: object) -> None:
        nonlocal n_statements
        if n_statements == killed_at:
            raise KilledError
        n_statements += 1

    db.event.listen(db.Engine, "before_cursor_execute", count)
    try:
        open_instance(load_settings()).dispose()
    except KilledError:
        assert is_missing(load_settings())
    finally:
        db.event.remove(db.Engine, "before_cursor_execute", count)
    return n_statements


def schemas(root: Path) -> dict[str, list[tuple[str, ...]]]:
    """What Dagster's databases are made of, with their versions and the indexes that are known to be built."""
    found = {}
    home = root / ".ingest" / "dagster"
    for path in sorted(home.glob("*/**/*.db")):
        with sqlite3.connect(path) as database:
            tables = database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
            built = "secondary_indexes" in dict(tables)
            found[str(path.relative_to(home))] = [
                *tables,
                *database.execute("SELECT version_num FROM alembic_version"),
                *(database.execute("SELECT name FROM secondary_indexes ORDER BY name") if built else ()),
            ]
    return found


def test_a_kill_while_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the making of them is killed, the next process finds none, or makes them whole."""
    whole = Project(tmp_path / "whole").root
    n_statements = make(whole, monkeypatch)
    assert len(schemas(whole)) == 3
    for killed_at in range(0, n_statements, max(1, n_statements // 8)):
        root = Project(tmp_path / str(killed_at)).root
        make(root, monkeypatch, killed_at)
        make(root, monkeypatch)
        assert schemas(root) == schemas(whole), f"killed before statement {killed_at} of {n_statements}"
        with open_instance(load_settings()) as instance:
            DagsterPartitions(instance).add(["a"])
