"""Paths as people write them in a configuration."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def local_path(base: Path, written: str) -> Path:
    """Where a written path leads: `~` at its beginning is the home folder, and a relative one counts from `base`.

    No shell has seen a configuration, and a folder called `~` would be a trap for whoever removes it.
    """
    at_home = written == "~" or written.startswith("~/")
    return (base / (Path(written).expanduser() if at_home else written)).absolute()


def sqlite_path(base: Path, uri: str) -> Path | None:
    """The file a `sqlite:///` URI names, a relative one counted from `base`; None for a URI of another kind."""
    return base / unquote(urlsplit(uri).path[1:]) if uri.startswith("sqlite:///") else None
