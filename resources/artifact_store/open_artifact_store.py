"""Which artifact store a URI names.

| URI | store | for |
|---|---|---|
| `sqlite:///relative/or//absolute/path` | one SQLite file | one machine, many processes; the default |
| `s3://bucket/prefix?endpoint_url=…&region=…&read_timeout=…` | an object for each artifact | workers on many machines |

Characters a URI gives a meaning (`?`, `#`, `%`) are percent-encoded in a path.
"""

from collections.abc import Callable
from pathlib import Path

from resources.artifact_store.artifact_store import ArtifactStore
from resources.aws.location import AwsLocation, parse_location
from resources.local_path import sqlite_path


class ArtifactStoreUriError(ValueError):
    """The URI names no artifact store we have, or has a part its scheme does not know."""


def open_artifact_store(uri: str, base: Path) -> ArtifactStore:
    """Open the artifact store a URI names; nothing is asked of it before it is used.

    Args:
        uri: see above.
        base: where a relative path counts from.

    Raises:
        ArtifactStoreUriError: no store has this scheme, or the URI has a part its scheme does not know.
    """
    place = parse_artifact_store_uri(uri, base)
    if isinstance(place, AwsLocation):
        from resources.artifact_store.s3_artifact_store import S3ArtifactStore

        return S3ArtifactStore(place)
    from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore

    return SqliteArtifactStore(place)


def parse_artifact_store_uri(uri: str, base: Path) -> Path | AwsLocation:
    """Where a URI's artifacts are: a file, or a place in a bucket.

    Args:
        uri: see above.
        base: where a relative path counts from.

    Raises:
        ArtifactStoreUriError: no store has this scheme, or the URI has a part its scheme does not know.
    """
    scheme, found, _ = uri.partition("://")
    parse = _PARSERS.get(scheme) if found else None
    if parse is None:
        raise ArtifactStoreUriError(
            f"unknown artifact store scheme '{scheme}' in '{uri}'. Known: {', '.join(_PARSERS)}."
        )
    return parse(uri, base)


def _parse_sqlite(uri: str, base: Path) -> Path:
    try:
        return sqlite_path(base, uri)
    except ValueError as error:
        raise ArtifactStoreUriError(str(error)) from None


def _parse_s3(uri: str, base: Path) -> AwsLocation:
    del base
    try:
        return parse_location(uri, takes_prefix=True)
    except ValueError as error:
        raise ArtifactStoreUriError(str(error)) from None


_PARSERS: dict[str, Callable[[str, Path], Path | AwsLocation]] = {"sqlite": _parse_sqlite, "s3": _parse_s3}
