"""Which backend a URI names.

| URI | backend | for |
|---|---|---|
| `memory://` | a dict | tests |
| `sqlite:///relative/or//absolute/path` | one SQLite file | one machine, many processes; the default |
| `s3://bucket/prefix` | JSON lines in a bucket | many machines, and only a bucket; up to about 100,000 documents |
| `dynamodb://table` | one item a record | many machines, a million documents and more |

Characters a URI gives a meaning (`?`, `#`, `%`) are percent-encoded in a path.
"""

from collections.abc import Callable
from pathlib import Path

from resources.local_path import sqlite_path
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
        # The rest is not repeated: the URI of something else may hold a password.
        raise UnknownSchemeError(f"Unknown state store scheme '{scheme}'. Known: {', '.join(_OPENERS)}.")
    return opener(uri, base)


def _open_memory(uri: str, base: Path) -> RecordBackend:
    from resources.records.memory_backend import MemoryBackend

    del base
    if uri != "memory://":
        raise UnknownSchemeError("memory:// takes no path and no option.")
    return MemoryBackend()


def _open_sqlite(uri: str, base: Path) -> RecordBackend:
    from resources.records.sqlite_backend import SqliteBackend

    try:
        return SqliteBackend(sqlite_path(base, uri))
    except ValueError as error:
        raise UnknownSchemeError(str(error)) from error


def _open_s3(uri: str, base: Path) -> RecordBackend:
    from resources.aws.location import parse_location
    from resources.records.s3.s3_backend import S3Backend

    del base
    try:
        return S3Backend(parse_location(uri, takes_prefix=True))
    except ValueError as error:
        raise UnknownSchemeError(str(error)) from error


def _open_dynamodb(uri: str, base: Path) -> RecordBackend:
    from resources.aws.location import parse_location
    from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend

    del base
    try:
        return DynamoDbBackend(parse_location(uri, takes_prefix=False))
    except ValueError as error:
        raise UnknownSchemeError(str(error)) from error


_OPENERS: dict[str, Callable[[str, Path], RecordBackend]] = {
    "memory": _open_memory,
    "sqlite": _open_sqlite,
    "s3": _open_s3,
    "dynamodb": _open_dynamodb,
}
