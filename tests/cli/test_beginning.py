"""The first minutes with the command line: no project here, a version to report, Ctrl-C before it has begun."""

import os
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from ingest_assets.cli import main
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


def test_help_begins_with_what_comes_first():
    """`ingest run` is the first command that help lists."""
    told = CliRunner().invoke(app, ["--help"], env={**os.environ, "COLUMNS": "100"}).stdout
    assert told.index(" run ") < told.index(" plan ") < told.index(" serve ")
    assert "knows the truth about every document" in " ".join(told.split())
