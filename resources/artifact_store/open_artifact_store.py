"""Which artifact store a URI names.

| URI | store | for |
|---|---|---|
| `sqlite:///relative/or//absolute/path` | one SQLite file | one machine, many processes; the default |
| `s3://bucket/prefix?endpoint_url=…&region=…` | an object for each artifact | workers on many machines |

Characters a URI gives a meaning (`?`, `#`, `%`) are percent-encoded in a path.
"""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from resources.artifact_store.artifact_store import ArtifactStore
from resources.aws.location import parse_location


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
    scheme, found, _ = uri.partition("://")
    opener = _OPENERS.get(scheme) if found else None
    if opener is None:
        raise ArtifactStoreUriError(
            f"unknown artifact store scheme '{scheme}' in '{uri}'. Known: {', '.join(_OPENERS)}."
        )
    return opener(uri, base)


def _open_sqlite(uri: str, base: Path) -> ArtifactStore:
    from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore

    parts = urlsplit(uri)
    if parts.netloc or parts.query or parts.fragment or len(parts.path) < 2:  # noqa: PLR2004 - "/" and a name
        raise ArtifactStoreUriError(f"'{uri}': write sqlite:///path; it takes no host and no option.")
    return SqliteArtifactStore(base / unquote(parts.path[1:]))


def _open_s3(uri: str, base: Path) -> ArtifactStore:
    from resources.artifact_store.s3_artifact_store import S3ArtifactStore

    del base
    try:
        location = parse_location(uri, takes_prefix=True)
    except ValueError as error:
        raise ArtifactStoreUriError(str(error)) from None
    return S3ArtifactStore(location)


_OPENERS: dict[str, Callable[[str, Path], ArtifactStore]] = {"sqlite": _open_sqlite, "s3": _open_s3}
