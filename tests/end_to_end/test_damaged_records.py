"""Commands beside a damaged record: each does the others, names the damaged one, and says what mends it."""

import json
import sqlite3
import zipfile
from typing import Any

import pytest

from tests.end_to_end.project import Project

CONFIG = """
default_embedder = "hash"
extractor = "none"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "a"
[[stores]]
slug = "b"
"""


@pytest.fixture
def damaged(project: Project) -> str:
    """The id of a document whose record is damaged; the project has two more, and an archive, in two stores."""
    project.configure(CONFIG)
    for number in range(3):
        project.write(f"{number}.md", f"# Document {number}\n\nIts text has the number {number}.")
    with zipfile.ZipFile(project.docs / "pack.zip", "w") as pack:
        pack.writestr("member.md", "# Member\n\nIt lies in a pack.")
    project.json("run")
    with sqlite3.connect(project.root / ".ingest/state.db") as state:
        [document_id] = state.execute("SELECT key FROM records WHERE kind = 'document' AND key LIKE '1%'").fetchone()
        state.execute("UPDATE records SET value = x'6a756e6b' WHERE kind = 'document' AND key = ?", (document_id,))
    return document_id


def test_every_command_goes_on_with_the_others(project: Project, damaged: str) -> None:
    """What needs the records of many leaves one out and ends with 1; what needs every one removes nothing."""
    forced = named(project, damaged, "run", "--force")
    assert (forced["n_requested"], forced["n_succeeded"], forced["n_skipped"]) == (4, 3, 1)
    project.write("0.md", "# Document 0\n\nIt says something else now.")
    project.write("1.md", "# Document 1\n\nThis too.")
    assert [d["filename"] for d in named(project, damaged, "plan")["documents"]] == ["0.md"]
    assert named(project, damaged, "run")["n_succeeded"] == 1
    kept = artifacts(project)
    assert named(project, damaged, "gc")["n_damaged"] == 1
    assert artifacts(project) == kept
    assert named(project, damaged, "stores", "drop", "a", "--yes")["n_documents"] == 3
    assert project.json("run", "--store", "a", "--missing")["n_succeeded"] == 3
    for command in ("show", "why", "retry", "delete"):
        done = project.run(command, "docs/1.md", *(["--yes"] if command == "delete" else []))
        assert (done.returncode, damaged in done.stderr, "verify --repair" in done.stderr) == (1, True, True), command
    deleted = named(project, damaged, "delete", "docs/pack.zip", "--yes")["documents"]
    assert [found["fate"] for found in deleted] == ["deleted", "deleted"]


def named(project: Project, damaged: str, *command: str) -> Any:
    """What a command says that ends with 1, and names the damaged record and what mends it."""
    done = project.run(*command, "--json")
    assert done.returncode == 1, (command, done.stderr)
    [complaint] = [line for line in done.stderr.splitlines() if line.startswith("Damaged records: 1.")]
    assert damaged in complaint
    assert "verify --repair" in complaint
    return json.loads(done.stdout)


def artifacts(project: Project) -> list[tuple[str]]:
    """The keys of what is kept."""
    with sqlite3.connect(project.root / ".ingest/artifacts/artifacts.db") as kept:
        return kept.execute("SELECT key FROM artifacts ORDER BY key").fetchall()
