"""A corpus that changes: what is new, edited, touched, moved away or named on the command line."""

import contextlib
import os
import shutil
import sqlite3
import time

import dagster as dg
import pytest

from tests.end_to_end.project import Project


def _ingest(project: Project, **texts: str) -> None:
    for name, text in texts.items():
        project.write(f"{name}.md", text)
    project.json("run")


def test_only_what_changed_is_worked_on(project: Project) -> None:
    """After an edit, an addition and a removal, just these three documents are requested."""
    _ingest(project, kept="# Kept\n\nStays.", edited="# Edited\n\nOld words.", gone="# Gone\n\nLeaves.")
    project.write("edited.md", "# Edited\n\nNew words.")
    project.write("added.md", "# Added\n\nArrives.")
    (project.docs / "gone.md").unlink()
    planned = {p["filename"]: (p["action"], p["why"]) for p in project.json("plan")["documents"]}
    assert planned == {
        "edited.md": ("extract", "changed"),
        "added.md": ("extract", "new"),
        "gone.md": ("remove", "vanished"),
    }
    done = project.json("run")
    assert {result["filename"]: result["status"] for result in done["results"]} == {
        "edited.md": "succeeded",
        "added.md": "succeeded",
        "gone.md": "removed",
    }
    assert done["n_unchanged"] == 1
    found = {hit["filename"]: hit["text"] for hit in project.json("search", "words", "-k", "10")}
    assert found.keys() == {"kept.md", "edited.md", "added.md"}
    assert "New words." in found["edited.md"]


def test_a_document_that_is_gone(project: Project) -> None:
    """What is gone owes nothing: it is not shown as pending, and trying it again is refused with the reason."""
    _ingest(project, kept="# Kept\n\nStays.", gone="# Gone\n\nLeaves.")
    (project.docs / "gone.md").unlink()
    project.json("run")
    shown = project.run("show", "docs/gone.md").stdout
    assert "Gone: its source no longer has it" in shown
    assert "PENDING" not in shown
    retried = project.run("retry", "docs/kept.md", "docs/gone.md")
    assert retried.returncode == 2
    assert "gone.md: its source no longer has it. Nothing was tried." in retried.stderr
    assert "there was nothing to do." in project.run("retry", "docs/kept.md").stdout
    listed = project.run("jobs").stdout.split()
    assert "1: 1 succeeded" in " ".join(listed)
    for job in project.json("jobs"):
        assert job["job_id"] in project.run("jobs", job["job_id"]).stdout


def test_a_touched_file_is_not_extracted_again(project: Project) -> None:
    """A new modification time alone is looked at once, found unchanged, and requests nothing."""
    _ingest(project, one="# One\n\nText.")
    future = time.time() - 3600
    os.utime(project.docs / "one.md", (future, future))
    done = project.json("run")
    assert (done["n_requested"], done["n_unchanged"]) == (0, 1)
    assert project.json("run")["results"] == []


def test_a_path_in_a_source_is_that_part_of_it(project: Project) -> None:
    """Naming a folder lists only that; nothing outside it vanishes or is picked up."""
    project.write("a/one.md", "# One\n\nText.")
    project.write("b/two.md", "# Two\n\nText.")
    project.json("run")
    shutil.rmtree(project.docs / "b")
    project.write("a/three.md", "# Three\n\nText.")
    done = project.json("run", "docs/a")
    assert [result["filename"] for result in done["results"]] == ["a/three.md"]
    assert project.json("status")["documents"] == 3


@pytest.mark.parametrize(("arguments", "n_done"), [((), 1), (("docs/one.md",), 1), (("--force",), 2)])
def test_a_record_that_somebody_deleted_is_made_anew(project: Project, arguments: tuple[str, ...], n_done: int) -> None:
    """A document whose record was deleted from the state by hand is planned and done as a new one."""
    _ingest(project, one="# One\n\nText.", two="# Two\n\nText.")
    lost = project.json("show", "one.md")["document_id"]
    with contextlib.closing(sqlite3.connect(project.root / ".ingest" / "state.db")) as state, state:
        assert state.execute("DELETE FROM records WHERE kind = 'document' AND key = ?", (lost,)).rowcount == 1
    assert [(p["filename"], p["why"]) for p in project.json("plan")["documents"]] == [("one.md", "new")]
    done = {result["filename"]: result["status"] for result in project.json("run", *arguments)["results"]}
    assert (done["one.md"], len(done)) == ("succeeded", n_done)
    assert project.json("status")["documents"] == 2


def test_another_path_becomes_a_source(project: Project) -> None:
    """A folder outside of every source is remembered under its name, and a plain run lists it too."""
    other = project.root / "Other Papers"
    other.mkdir()
    (other / "x.md").write_text("# X\n\nText.")
    done = project.json("run", "Other Papers")
    assert [result["source_uri"] for result in done["results"]] == ["other-papers:x.md"]
    (other / "y.md").write_text("# Y\n\nText.")
    assert [result["source_uri"] for result in project.json("run")["results"]] == ["other-papers:y.md"]
    assert project.run("forget", "other-papers").returncode == 0
    (other / "z.md").write_text("# Z\n\nText.")
    assert project.json("run")["results"] == []


def test_a_failed_document_comes_back_by_hand_or_by_change(project: Project) -> None:
    """A final failure is not tried by itself; `retry` and new content do."""
    project.write("empty.md", "")
    assert project.json("run", code=1)["results"][0]["reason"] == "empty_file"
    assert project.json("run")["n_requested"] == 0
    assert project.json("retry", "docs/empty.md", code=1)["results"][0]["reason"] == "empty_file"
    assert project.json("run", "--mode", "retry-failed", code=1)["n_requested"] == 1
    project.write("empty.md", "# Filled\n\nText.")
    assert project.json("run")["n_succeeded"] == 1


def test_a_skipped_document_is_reported(project: Project) -> None:
    """A type nobody reads is skipped with its reason, and does not make the run fail."""
    (project.docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    done = project.json("run")
    assert [(item["filename"], item["reason"]) for item in done["skipped"]] == [("picture.png", "unsupported_type")]


def test_names_no_tool_expects(project: Project) -> None:
    """Any name a file system takes is ingested, shown safely, and found again by its path."""
    names = [b"new\nline.md", b"com,ma.md", b"a..dots...md", "e\u0301moji \U0001f600.md".encode(), b"bad\xff\xfe.md"]
    names.append(b"n" * 252 + b".md")
    for number, name in enumerate(names):
        (project.docs / os.fsdecode(name)).write_text(f"# Title {number}\n\nText number {number}.")
    done = project.json("run")
    assert done["n_succeeded"] == len(names)
    assert len({result["document_id"] for result in done["results"]}) == len(names)
    assert all(result["filename"].isprintable() for result in done["results"])
    assert project.json("show", "docs/com,ma.md")["title"] == "Title 1"


def test_partitions_come_back_when_dagsters_folder_is_lost(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are the truth: without Dagster's folder the next run makes the known documents partitions again."""
    _ingest(project, one="# One\n\nText.", two="# Two\n\nText.")
    shutil.rmtree(project.root / ".ingest" / "dagster")
    assert project.json("run")["n_requested"] == 0
    monkeypatch.setenv("DAGSTER_HOME", str(project.root / ".ingest" / "dagster"))
    with dg.DagsterInstance.get() as instance:
        assert len(instance.get_dynamic_partitions("documents")) == 2


def test_force_fills_a_store_that_is_gone(project: Project) -> None:
    """With --force every document is done again, which brings back a store whose file was lost."""
    _ingest(project, one="# One\n\nText.", two="# Two\n\nText.")
    (project.root / ".ingest" / "stores" / "default.duckdb").unlink()
    assert project.json("run")["n_requested"] == 0
    assert "`ingest verify --store default --repair` builds it again" in project.run("search", "text").stderr
    assert project.json("run", "--force")["n_succeeded"] == 2
    assert len(project.json("search", "text")) == 2


def test_lost_artifacts_hide_no_removal(project: Project) -> None:
    """The listing snapshot is only a hint: without it a removed document still goes from every store."""
    _ingest(project, one="# One\n\nText.", two="# Two\n\nText.")
    shutil.rmtree(project.root / ".ingest" / "artifacts")
    (project.docs / "two.md").unlink()
    assert [result["status"] for result in project.json("run")["results"]] == ["removed"]
    assert [hit["filename"] for hit in project.json("search", "text")] == ["one.md"]


def test_a_lost_state_is_filled_again(project: Project) -> None:
    """Without records everything is listed and done again, into the stores as they are."""
    _ingest(project, one="# One\n\nText.")
    for path in (project.root / ".ingest").glob("state.db*"):
        path.unlink()
    assert project.json("run")["n_succeeded"] == 1
    assert len(project.json("search", "text")) == 1


def test_a_source_that_is_taken_out_is_named(project: Project) -> None:
    """Documents of a source that is not configured any more are counted as such."""
    _ingest(project, one="# One\n\nText.")
    project.configure('[[sources]]\nname = "other"\nuri = "other"\n')
    assert project.json("status")["lost_sources"] == {"docs": 1}
