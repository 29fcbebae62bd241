"""Which backend a URI names.

| URI | backend | for |
|---|---|---|
| `memory://` | a dict | tests |
| `sqlite:///relative/or//absolute/path` | one SQLite file | one machine, many processes; the default |

Characters a URI gives a meaning (`?`, `#`, `%`) are percent-encoded in a path.
"""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from resources.records.backend import RecordBackend


class UnknownSchemeError(ValueError):
    """The URI names no backend we have, or has a part its scheme does not know."""


def open_backend(uri: str, base: Path) -> RecordBackend:
    """Open the backend a URI names; a relative path counts from `base`.

    Raises:
        UnknownSchemeError: no backend has this scheme.
        ValueError: the URI has a part its scheme does not know.
    """
    scheme, found, _ = uri.partition("://")
    opener = _OPENERS.get(scheme) if found else None
    if opener is None:
        raise UnknownSchemeError(f"Unknown state store scheme '{scheme}' in '{uri}'. Known: {', '.join(_OPENERS)}.")
    return opener(uri, base)


def _open_memory(uri: str, base: Path) -> RecordBackend:
    from resources.records.memory_backend import MemoryBackend

    del base
    if uri != "memory://":
        raise UnknownSchemeError(f"'{uri}': memory:// takes no path and no option.")
    return MemoryBackend()


def _open_sqlite(uri: str, base: Path) -> RecordBackend:
    from resources.records.sqlite_backend import SqliteBackend

    parts = urlsplit(uri)
    if parts.netloc or parts.query or parts.fragment or len(parts.path) < 2:  # noqa: PLR2004 - "/" and a name
        raise UnknownSchemeError(f"'{uri}': write sqlite:///path; it takes no host and no option.")
    return SqliteBackend(base / unquote(parts.path[1:]))


_OPENERS: dict[str, Callable[[str, Path], RecordBackend]] = {"memory": _open_memory, "sqlite": _open_sqlite}
