"""A user's project in a folder of its own, driven through the installed command line."""

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.end_to_end.dying import Point
from tests.end_to_end.preloaded import Preloaded

INGEST = Path(sys.executable).with_name("ingest")
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@cache
def preloaded() -> Preloaded:
    """One for all tests of this process."""
    return Preloaded()


class Project:
    """A folder with an ingest.toml, its documents and its data."""

    def __init__(self, root: Path, config: str = "") -> None:
        self.root = root
        self.docs = root / "docs"
        self.docs.mkdir(parents=True, exist_ok=True)
        self.environment: dict[str, str] = {}
        self.patience_seconds = 120.0
        self.configure(config or '[[sources]]\nname = "docs"\nuri = "docs"\n')

    def configure(self, config: str) -> None:
        """Write ingest.toml."""
        (self.root / "ingest.toml").write_text(config)

    def write(self, name: str, text: str) -> Path:
        """Put a document in."""
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *arguments: str, stdin: bool = False) -> "subprocess.Popen[str]":
        """Start a command and let it run; with `stdin`, what it reads is to be written to it."""
        return subprocess.Popen(
            [str(INGEST), *arguments],
            cwd=self.root,
            env=self._environment(),
            stdin=subprocess.PIPE if stdin else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def dies(self, point: Point, *arguments: str) -> str:
        """Run a command that kills itself at a point, which it must reach; what it printed until then."""
        done = preloaded().run(arguments, self.root, self._environment(), self.patience_seconds, str(point))
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return preloaded().run(arguments, self.root, self._environment(), self.patience_seconds)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """What a command says with --json; it must end with `code`."""
        done = self.run(*arguments, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def _environment(self) -> dict[str, str]:
        private = ("INGEST_", "DAGSTER_", "DEFAULT_EMBEDDER")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
        return inherited | self.environment
