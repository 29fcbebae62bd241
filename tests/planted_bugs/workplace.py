"""A copy of the project in which a bug can be planted and the tests be run, away from the real one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGES = ("resources", "sensors", "ingest_assets", "tests")
FAILED, PASSED = 1, 0  # what pytest's exit codes mean; errors of collection and of usage are 2 to 5


class NotPlantableError(Exception):
    """The text that a bug replaces does not stand in its file exactly once."""


def replaced(source: str, text: str, planted: str, file: str) -> str:
    """The source with one text replaced.

    Raises:
        NotPlantableError: the text stands there never or several times.
    """
    if (found := source.count(text)) != 1:
        raise NotPlantableError(
            f"{file}: {text!r} stands there {found} times, not once. Mend tests/planted_bugs/bugs.py."
        )
    return source.replace(text, planted)


class Workplace:
    """A copy of the project below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for package in PACKAGES:
            shutil.copytree(PROJECT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(PROJECT / "pyproject.toml", folder)
        # No bytecode: it is told from its source by size and second, and a bug may change neither.
        self._environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "500"}
        self._ensure_imported()

    def test(self, *tests: str) -> tuple[int, str]:
        """Run tests in the copy; pytest's exit code, and what it printed."""
        command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--tb=short", *tests]
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=600, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def write(self, file: str, source: str) -> None:
        """Change a file of the copy."""
        (self.folder / file).write_text(source)

    def read(self, file: str) -> str:
        """A file of the copy."""
        return (self.folder / file).read_text()

    def _ensure_imported(self) -> None:
        """The project is installed in place: without this, tests could run against the real one and pass."""
        code = f"import {', '.join(PACKAGES)}; print(*(p.__file__ for p in ({', '.join(PACKAGES)})), sep='\\n')"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        elsewhere = [line for line in done.stdout.split() if not Path(line).is_relative_to(self.folder)]
        if elsewhere:
            raise RuntimeError(f"Imported from elsewhere than {self.folder}: {', '.join(elsewhere)}.")
