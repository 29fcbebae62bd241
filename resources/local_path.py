"""Paths as people write them in a configuration."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def local_path(base: Path, written: str) -> Path:
    """Where a written path leads: `~` at its beginning is the home folder, and a relative one counts from `base`.

    No shell has seen a configuration, and a folder called `~` would be a trap for whoever removes it.
    """
    at_home = written == "~" or written.startswith("~/")
    return (base / (Path(written).expanduser() if at_home else written)).absolute()


def sqlite_path(base: Path, uri: str) -> Path:
    """The file a `sqlite:///` URI names; a relative one counts from `base`.

    Raises:
        ValueError: it has no path, or more than that.
    """
    parts = urlsplit(uri)
    if parts.netloc or parts.query or parts.fragment or len(parts.path) < 2:  # noqa: PLR2004 - "/" and a name
        raise ValueError(f"sqlite://{parts.path}: write sqlite:///path; it takes no host and no option.")
    return base / unquote(parts.path[1:])
