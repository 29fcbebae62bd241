"""Wrong commands, configurations and folders: a sentence that helps, an exit code, and nothing lost."""

import os

import pytest

from tests.end_to_end.project import Project


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["run", "nowhere"], "nowhere does not exist"),
        (["run", ""], "A path is empty"),
        (["forget", "docs"], "'docs' is no remembered folder"),
        (["run", "--mode", "sometimes"], "incremental"),
        (["run", "--failed", "--force"], "--force does every document again"),
        (["search", "x", "--store", "attic"], "Unknown store 'attic'. Known: default."),
        (["show", "nobody.md"], "No document 'nobody.md' is known"),
        (["retry", "nobody.md"], "No document 'nobody.md' is known"),
        (["jobs", "42"], "There is no job '42'"),
        (["dance"], "No such command"),
    ],
)
def test_wrong_usage_is_explained(project: Project, command: list[str], says: str) -> None:
    """Each wrong command exits with 2 and says what is wrong, without a traceback."""
    done = project.run(*command)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("sources = [", "is no valid TOML"),
        ("colour = 'red'", "unknown key 'colour'. Known: api, artifact_store, chunking"),
        ("[runs]\nspeed = 9", "unknown key 'runs.speed'. Known: documents"),
        ("[[sources]]\nname = 'a'\nuri = 'ftp://x'", "unknown scheme 'ftp'"),
        ("document_state_store = 'redis://x'", "Unknown state store scheme 'redis'"),
        ("default_embedder = 'none-such'", "Unknown embedder 'none-such'"),
        ("extractor = 'none-such'", "Unknown extractor 'none-such'"),
        ("[[stores]]\nslug = 'a'\nkind = 'paper'", "paper"),
    ],
)
def test_a_broken_configuration_is_explained(project: Project, config: str, says: str) -> None:
    """Each fault in ingest.toml exits with 2 and names the fault and what is known."""
    project.write("one.md", "# One\n\nText.")
    if "sources" not in config:
        config += "\n[[sources]]\nname = 'docs'\nuri = 'docs'\n"
    project.configure(config)
    done = project.run("run")
    assert done.returncode == 2, done.stdout
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["status"], ["search", "x"], ["show", "x.md"], ["run"], ["plan"]])
def test_in_the_wrong_folder(project: Project, command: list[str]) -> None:
    """Where there is neither a configuration nor a document, each command names the folder and what to do."""
    (project.root / "ingest.toml").unlink()
    done = project.run(*command)
    told = " ".join((done.stdout + done.stderr).split())
    assert f"There is no ingest.toml in {project.root}" in told
    assert "`ingest run FOLDER`" in told


def test_a_missing_source_stops_no_other(project: Project) -> None:
    """A source whose folder is gone is named; the others are ingested, and nothing of it vanishes."""
    project.write("one.md", "# One\n\nText.")
    project.configure('[[sources]]\nname = "docs"\nuri = "docs"\n[[sources]]\nname = "lost"\nuri = "lost"\n')
    done = project.json("run", code=1)
    assert done["n_succeeded"] == 1
    assert "Source 'lost'" in done["source_errors"][0]
    project.docs.rename(project.root / "elsewhere")
    assert len(project.json("run", code=1)["source_errors"]) == 2
    assert project.json("status")["stores"] == {"default": {"Ingested": 1}}


def test_a_source_that_lost_most_of_its_documents_is_not_believed(project: Project) -> None:
    """A listing that shrank abnormally removes nothing until a person says so."""
    for number in range(30):
        project.write(f"{number}.md", f"# Document {number}\n\nText.")
    project.json("run")
    for number in range(29):
        (project.docs / f"{number}.md").unlink()
    assert project.json("plan", code=1)["documents"] == []
    done = project.json("run", code=1)
    assert (done["n_requested"], done["vanished_refused"]) == (0, 29)
    assert project.json("run", "--accept-vanished")["n_succeeded"] == 29
    assert project.json("status")["documents"] == 1


@pytest.mark.parametrize("command", ["show", "retry", "run", "jobs", "plan"])
def test_arguments_that_are_no_text(project: Project, command: str) -> None:
    """Bytes that are no UTF-8, and escapes for the terminal, are refused like any unknown name and shown safely."""
    for argument in (os.fsdecode(b"\xff"), "\x1b[31mred"):
        done = project.run(command, argument)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert "\x1b" not in done.stderr


def test_a_file_outside_of_every_source_is_no_source(project: Project) -> None:
    """Naming a file whose folder is no source makes none: what else lies beside it was not asked for."""
    (project.root / "diary.md").write_text("# Private\n\nText.")
    done = project.run("run", "diary.md")
    assert done.returncode == 2
    assert "Name its folder" in done.stderr
    assert project.json("status")["documents"] == 0
