"""Deleting documents for good, by the command line: of equal content, in several sources, in several stores."""

import sqlite3
from contextlib import closing

import duckdb
import pytest

from tests.end_to_end.project import Project

_CONFIG = """
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[[sources]]
name = "again"
uri = "docs"
[[stores]]
slug = "default"
[[stores]]
slug = "legal-v1"
"""
_TEXT = "# Equal\n\nThe very same words."


def held(project: Project, store: str) -> set[str]:
    """The documents a store has any row of, whatever the records say."""
    path = str(project.root / ".ingest" / "stores" / f"{store}.duckdb")
    with duckdb.connect(path, read_only=True) as connection:
        tables = ("documents", "chunks", "entries")
        rows = connection.execute(" UNION ".join(f"SELECT document_id FROM {table}" for table in tables)).fetchall()
    return {row[0] for row in rows}


def artifacts(project: Project) -> set[str]:
    """The documents something is kept of."""
    with closing(sqlite3.connect(project.root / ".ingest" / "artifacts" / "artifacts.db")) as connection:
        return {row[0] for row in connection.execute("SELECT document_id FROM artifacts")}


def record(project: Project, named: str) -> dict:
    """A document's record."""
    return {"presence": "present"} | project.json("show", named)


@pytest.fixture
def twins(project: Project) -> Project:
    """Two files of equal content, each in two sources and two stores."""
    project.configure(_CONFIG)
    project.write("a.md", _TEXT)
    project.write("b.md", _TEXT)
    assert project.json("run")["n_succeeded"] == 4
    return project


def test_each_in_turn(twins: Project) -> None:
    """Of documents of equal content, and of one object in two sources, each is deleted in turn: the others stay."""
    left = {name: record(twins, name)["document_id"] for name in ("docs:a.md", "docs:b.md", "again:a.md", "again:b.md")}
    for name in list(left):
        gone = left.pop(name)
        [deleted] = twins.json("delete", name, "--yes")["documents"]
        assert (deleted["fate"], deleted["still_in"]) == ("deleted", {})
        for store in ("default", "legal-v1"):
            assert held(twins, store) == set(left.values())
            hits = twins.json("search", "same words", "--store", store)
            assert {hit["document_id"] for hit in hits} == set(left.values())
        assert artifacts(twins) == set(left.values())
        assert record(twins, gone)["presence"] == "erased"
        # Its object is still there: no run brings it back, listing or not.
        assert twins.json("run")["n_requested"] == 0
    assert twins.json("status")["documents"] == 0


def test_said_before_it_is_done(twins: Project) -> None:
    """Without --yes nothing is deleted, and it is said what would be; twice is as once; unknown ones are an error."""
    said = twins.run("delete", "docs:a.md")
    assert said.returncode == 2
    assert "default, legal-v1" in said.stdout
    assert "--yes" in said.stderr
    assert record(twins, "docs:a.md")["presence"] == "present"
    for _ in range(2):
        done = twins.run("delete", "docs:a.md", "--yes")
        assert done.returncode == 0, done.stderr
        assert "Dagster's event log" in done.stdout
    assert twins.run("delete", "nobody.md", "--yes").returncode == 2


def test_restored(twins: Project) -> None:
    """A deleted document comes back when a person says so, into every store; one that was not deleted cannot."""
    twins.json("delete", "docs:a.md", "--yes")
    assert twins.json("restore", "docs:a.md")["n_succeeded"] == 1
    doc = record(twins, "docs:a.md")
    assert (doc["presence"], set(doc["links"])) == ("present", {"default", "legal-v1"})
    assert doc["document_id"] in held(twins, "legal-v1")
    assert twins.json("run")["n_requested"] == 0
    assert twins.run("restore", "docs:a.md").returncode == 2


def test_store_that_is_not_configured(twins: Project) -> None:
    """A store that was taken out of the configuration still holds the document: that is said, and what to do."""
    twins.configure(_CONFIG.removesuffix('[[stores]]\nslug = "legal-v1"\n'))
    done = twins.run("delete", "docs:a.md", "--yes")
    assert done.returncode == 1
    assert "store 'legal-v1' may hold it still" in done.stderr
    assert list(record(twins, "docs:a.md")["links"]) == ["legal-v1"]
    twins.configure(_CONFIG)
    assert twins.run("delete", "docs:a.md", "--yes").returncode == 0
    assert record(twins, "docs:a.md")["document_id"] not in held(twins, "legal-v1")


def test_missing_for_a_while(project: Project) -> None:
    """Within its grace period a vanished file's document is counted, found, and back without any work."""
    project.configure(_CONFIG + "[discovery]\nvanish_grace_hours = 24\n")
    project.write("a.md", _TEXT)
    project.json("run")
    path = project.docs / "a.md"
    path.rename(project.root / "a.md")
    assert project.json("run")["n_requested"] == 0
    assert project.json("status")["leaving"] == {"missing": 2}
    assert "until the grace period is over" in project.run("status").stdout
    assert len(project.json("search", "same words")) == 2
    (project.root / "a.md").rename(path)
    assert project.json("run")["n_requested"] == 0
    assert project.json("status")["leaving"] == {}
