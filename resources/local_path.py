"""Paths as people write them in a configuration."""

from pathlib import Path


def local_path(base: Path, written: str) -> Path:
    """Where a written path leads: `~` at its beginning is the home folder, and a relative one counts from `base`.

    No shell has seen a configuration, and a folder called `~` would be a trap for whoever removes it.
    """
    at_home = written == "~" or written.startswith("~/")
    return (base / (Path(written).expanduser() if at_home else written)).absolute()
