"""What a user feels before anything happens: how long commands take that have nothing to do.

    python -m benchmarks.bench_cli

Medians of seven runs of the whole command, and the ratio to an interpreter that does nothing, measured in turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_RUNS = 7
_DOCUMENTS = 1_000
_INGEST = str(Path(sys.executable).with_name("ingest"))
_COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import dagster'": [sys.executable, "-c", "import dagster"],
    "ingest --help": [_INGEST, "--help"],
    "ingest status": [_INGEST, "status"],
    f"ingest run, {_DOCUMENTS:,} unchanged": [_INGEST, "run"],
    "ingest search": [_INGEST, "search", "number seven"],
}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        docs = root / "docs"
        docs.mkdir()
        for number in range(_DOCUMENTS):
            (docs / f"{number}.md").write_text(f"# Document {number}\n\nNumber {number} is this one.\n")
        (root / "ingest.toml").write_text('[[sources]]\nname = "docs"\nuri = "docs"\n')
        _seconds([_INGEST, "run"], root)
        taken: dict[str, list[float]] = {name: [] for name in _COMMANDS}
        for _ in range(_RUNS):
            for name, command in _COMMANDS.items():
                taken[name].append(_seconds(command, root))
    bare = statistics.median(taken["python -c pass"])
    print(f"{'command':40}{'seconds':>10}{'times a bare interpreter':>28}")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"{name:40}{median:10.2f}{median / bare:28.1f}")


def _seconds(command: list[str], root: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("INGEST_", "DAGSTER_"))}
    start = time.perf_counter()
    subprocess.run(command, cwd=root, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
