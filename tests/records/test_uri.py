"""Which URI opens which backend, and what a wrong one is told."""

from pathlib import Path

import pytest

from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from resources.records.uri import UnknownSchemeError, open_backend

BASE = Path("/base")


def test_memory():
    """`memory://` is a dict."""
    assert isinstance(open_backend("memory://", BASE), MemoryBackend)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sqlite:///state.db", "/base/state.db"),
        ("sqlite:///a/b/state.db", "/base/a/b/state.db"),
        ("sqlite:////var/state.db", "/var/state.db"),
        ("sqlite:////a%20b/c%23/state.db", "/a b/c#/state.db"),
    ],
)
def test_sqlite_path(uri, path):
    """One slash more makes a path absolute; a relative one counts from the base; percent-encoding is decoded."""
    backend = open_backend(uri, BASE)
    assert isinstance(backend, SqliteBackend)
    assert backend.path == Path(path)


@pytest.mark.parametrize("uri", ["redis://host", "state.db", "", "://", "SQLITE:///x", "sqlite:/x"])
def test_unknown_scheme_lists_the_known(uri):
    """A URI of no backend is refused, and the message lists those there are."""
    with pytest.raises(UnknownSchemeError, match="Known: memory, sqlite"):
        open_backend(uri, BASE)


@pytest.mark.parametrize(
    "uri",
    [
        "memory://x",
        "memory:///x",
        "sqlite://host/x",
        "sqlite:///",
        "sqlite://",
        "sqlite:///x?mode=ro",
        "sqlite:///x#y",
    ],
)
def test_parts_a_scheme_does_not_know_are_refused(uri):
    """Hosts, options and fragments are errors, not ignored."""
    with pytest.raises(ValueError, match="takes no"):
        open_backend(uri, BASE)


def test_the_uri_of_something_else_is_not_repeated():
    """Somebody may name a database here, with its password."""
    with pytest.raises(UnknownSchemeError) as raised:
        open_backend("postgresql://bob:SECRET@host/x", BASE)
    assert "SECRET" not in str(raised.value)


def test_opening_touches_nothing(tmp_path):
    """Opening a URI makes no file and no folder."""
    open_backend("sqlite:///deep/state.db", tmp_path)
    assert list(tmp_path.iterdir()) == []
