"""`ingest state`: made, copied, and filled from another tool's savepoints, by the command line."""

import json

import pytest

from tests.end_to_end.project import Project

COPY = ("state", "copy", "sqlite:///.ingest/state.db", "sqlite:///copy.db")


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    for name in ("a", "b", "c"):
        project.write(f"{name}.md", f"# {name}\n\nSome text of {name}.")
    return project


@pytest.fixture
def checkpoint(project):
    """Savepoints as the other tool leaves them: document a is whole, b lacks a node."""
    folder = project.root / "output" / "save_points" / "extraction"
    folder.mkdir(parents=True)
    for node in ("a::1", "a::2", "b::1"):
        (folder / node).touch()
    nodes = {"a.md": ["a::1", "a::2"], "b.md": ["b::1", "b::2"], "gone.md": ["x"], "c.md": []}
    (project.root / "nodes.json").write_text(json.dumps(nodes))
    return folder


def test_create_is_safe_to_repeat(project):
    """Making the store twice is fine, another one too, and shards are only for those that have them."""
    for _ in range(2):
        assert "is ready" in project.run("state", "create").stdout
    assert project.run("state", "create", "sqlite:///other.db").returncode == 0
    assert (project.root / "other.db").exists()
    refused = project.run("state", "create", "--shards", "8")
    assert (refused.returncode, "not kept in shards" in refused.stderr) == (2, True)


def test_a_copied_state_is_the_same_state(project):
    """Work goes on with the copy as it would have with the original: nothing is done twice."""
    project.run("run")
    copied = project.json(*COPY)
    assert {kind["kind"] for kind in copied["kinds"]} >= {"document", "job"}
    project.configure('document_state_store = "sqlite:///copy.db"\n[[sources]]\nname = "docs"\nuri = "docs"\n')
    again = project.json("run")
    assert (again["n_requested"], again["n_unchanged"]) == (0, 3)
    project.write("d.md", "# d\n\nNew text.")
    assert project.json("run")["n_succeeded"] == 1


def test_copy_refuses_what_it_would_spoil(project):
    """A target with records, an empty source and an unknown scheme are each refused with the way out."""
    project.run("run")
    project.run(*COPY)
    for command, said in (
        (COPY, "--into-existing"),
        (("state", "copy", "sqlite:///nothing.db", "sqlite:///new.db"), "no record"),
        (("state", "copy", "redis://x", "sqlite:///new.db"), "Known: memory, sqlite"),
    ):
        done = project.run(*command)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert project.run(*COPY, "--into-existing").returncode == 0


def test_import_of_savepoints(project, checkpoint):
    """Complete documents count as extracted and are not worked on; the others are; savepoints stay as they are."""
    before = sorted(checkpoint.iterdir())
    command = ("state", "import-checkpoint", "output", "--nodes", "nodes.json")
    imported = project.json(*command, code=1)
    assert (imported["extracted"], imported["incomplete"], imported["unknown"]) == (
        ["a.md"],
        ["b.md", "c.md"],
        ["gone.md"],
    )
    shown = project.json("show", "a.md")
    assert (shown["extraction"]["status"], shown["build"]["status"], shown["n_chunks"]) == ("COMPLETED", "COMPLETED", 2)
    assert project.json("show", "b.md")["extraction"]["status"] == "PENDING"
    assert sorted(checkpoint.iterdir()) == before
    assert project.json(*command, code=1)["already"] == ["a.md"]
    ran = project.json("run")
    assert (ran["n_succeeded"], ran["n_unchanged"]) == (2, 1)
    project.write("a.md", "# a\n\nOther text of a.")
    assert project.json("run")["n_succeeded"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "--nodes", "nodes.json"), "no folder"),
        (("output", "--nodes", "missing.json"), "cannot be read"),
        (("output", "--nodes", "bad.json"), "line 1"),
        (("output", "--nodes", "twice.jsonl"), "twice"),
        (("output", "--nodes", "doubled.json"), "twice"),
        (("output", "--nodes", "empty.json"), "names no document"),
        (("output", "--nodes", "nodes.json", "--name", "other"), "Known: extraction"),
    ],
)
def test_bad_checkpoints_are_told(project, checkpoint, arguments, said):
    """What cannot be imported is one sentence that names it, and nothing is written."""
    (project.root / "doubled.json").write_text('{"a": ["1"], "a": ["2"]}')
    (project.root / "empty.json").write_text("{}")
    (project.root / "bad.json").write_text('{"a.md": 3}')
    (project.root / "twice.jsonl").write_text('{"document": "a", "nodes": []}\n{"document": "a", "nodes": []}\n')
    done = project.run("state", "import-checkpoint", *arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (project.root / ".ingest").exists()


def test_a_document_named_twice_is_imported_once(project, checkpoint):
    """Two names of one document are one document."""
    names = '{"a.md": ["a::1"], "docs:a.md": ["a::1"], "b.md": ["b::1"], "docs/b.md": ["b::2"]}'
    (project.root / "names.json").write_bytes(b"\xef\xbb\xbf" + names.encode())  # as some editors begin a file
    imported = project.json("state", "import-checkpoint", "output", "--nodes", "names.json")
    assert (imported["extracted"], imported["already"]) == (["a.md"], ["docs:a.md"])
    assert imported["incomplete"] == ["b.md", "docs/b.md"]


def test_several_checkpoints_are_told_apart(project, checkpoint):
    """Where a folder holds several checkpoints, one has to be named."""
    (checkpoint.parent / "build").mkdir()
    command = ("state", "import-checkpoint", "output", "--nodes", "nodes.json")
    refused = project.run(*command)
    assert (refused.returncode, "build, extraction" in refused.stderr) == (2, True)
    assert project.json(*command, "--name", "extraction", code=1)["extracted"] == ["a.md"]
