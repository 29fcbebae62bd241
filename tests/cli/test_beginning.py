"""The first minutes with the command line: no project here, a version to report, Ctrl-C before it has begun."""

import os
import sys
from importlib.metadata import version
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ingest_assets.cli import main, output
from ingest_assets.cli.app import app


class _Interrupted:
    """An import system in which somebody presses Ctrl-C while the commands are being loaded."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "ingest_assets.cli.app":
            raise KeyboardInterrupt


def test_ctrl_c_while_loading(monkeypatch):
    """Ctrl-C in the first second ends with the exit code of an interruption, and not with a traceback."""
    monkeypatch.delitem(sys.modules, "ingest_assets.cli.app")
    monkeypatch.setattr(sys, "meta_path", [_Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_version():
    """A version to report a fault with."""
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout.strip()) == (0, version("ingest-assets"))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["status"], 0), (["show", "a.md"], 2), (["why", "a.md"], 2), (["search", "words"], 0), (["plan"], 1),
        (["jobs"], 0), (["spend"], 0), (["stores", "list"], 0), (["verify"], 0), (["gc", "--dry-run"], 0),
        (["cache", "stats"], 0), (["chunks", "show", "a.md"], 2),
    ],
)  # fmt: skip
def test_who_only_looks_makes_nothing(tmp_path, monkeypatch, command, code):
    """In a folder where nothing was ever ingested, commands that look leave it as empty as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEFAULT_EMBEDDER", "hash")
    monkeypatch.setattr(output, "errors", Console(file=StringIO()))
    assert CliRunner().invoke(app, command).exit_code == code
    assert list(tmp_path.iterdir()) == []


def test_help_begins_with_what_comes_first():
    """`ingest run` is the first command that help lists."""
    told = CliRunner().invoke(app, ["--help"], env={**os.environ, "COLUMNS": "100"}).stdout
    assert told.index(" run ") < told.index(" plan ") < told.index(" serve ")
    assert "knows the truth about every document" in " ".join(told.split())


@pytest.mark.parametrize(("extractor", "says"), [("openai:mine", "price"), ("openai:gpt-4o-mini", "OPENAI_API_KEY")])
def test_an_extractor_that_cannot_work_is_told_at_once(monkeypatch, tmp_path, extractor, says):
    """Although there is nothing to do; looking at what is known needs no extractor."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "docs").mkdir()
    config = tmp_path / "ingest.toml"
    config.write_text(f'extractor = "{extractor}"\n[[sources]]\nname = "docs"\nuri = "docs"\n')
    monkeypatch.setenv("INGEST_CONFIG", str(config))
    said = StringIO()
    monkeypatch.setattr(output, "errors", Console(file=said, width=1000))
    monkeypatch.setattr(output, "console", Console(file=StringIO()))
    assert [CliRunner().invoke(app, command).exit_code for command in (["run"], ["retry", "d"], ["status"])] == [
        2,
        2,
        0,
    ]
    assert says in said.getvalue()
