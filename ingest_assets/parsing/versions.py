"""The versions that decide what a document's text comes out as."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from .formats import FORMATS

# Raised by hand whenever code of this package changes what comes out of the same bytes.
PARSING_VERSION = "8"


@lru_cache(maxsize=64)
def library_version(distribution: str) -> str:
    """The installed version of a library, or `absent`."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


def parser_name(library: str | None, media_type: str) -> str:
    """What a result calls its parser: the library and its version, or ours where none is used."""
    if library is None:
        return f"{media_type.rpartition('/')[2]} {PARSING_VERSION}"
    return f"{library} {library_version(library)}"


@lru_cache(maxsize=1)
def parser_fingerprint() -> str:
    """One line that names the versions of all parsers: a document parsed under another one is stale."""
    libraries = sorted({library for entry in FORMATS.values() for library in entry.libraries})
    return f"parsing {PARSING_VERSION}; " + ", ".join(f"{name} {library_version(name)}" for name in libraries)
