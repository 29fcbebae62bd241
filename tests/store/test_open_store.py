"""Stores by kind, from configuration."""

import pytest

from resources.embedder.embedder import EmbedderStamp
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.open_store import open_store
from resources.store.store import StoreConfigError

STAMP = EmbedderStamp("hash", "1", 64)


def test_kind_decides_the_class(tmp_path):
    """A kind opens its store, and opening writes nothing."""
    store = open_store("duckdb", "default", STAMP, {"path": str(tmp_path / "x.duckdb"), "lock_timeout": 3})
    assert isinstance(store, DuckDBStore)
    assert (store.slug, store.stamp) == ("default", STAMP)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("redis", {}, r"unknown store kind 'redis'\. Known: duckdb"),
        ("duckdb", {"path": "x", "pth": "y"}, r"unknown option 'pth'.*lock_timeout, memory_limit, path"),
        ("duckdb", {}, "path"),
        ("duckdb", {"path": 3}, "str"),
        ("duckdb", {"path": "x", "lock_timeout": "soon"}, "lock_timeout"),
    ],
)
def test_wrong_configuration_is_told(kind, config, message):
    """The message names the store, what is wrong and what is known."""
    with pytest.raises(StoreConfigError, match=f"'legal'.*{message}"):
        open_store(kind, "legal", STAMP, config)


def test_packages_can_add_kinds(monkeypatch, tmp_path):
    """A kind of another package's entry point opens like a built-in one, and cannot replace one."""
    from importlib.metadata import EntryPoint

    from resources import plug_ins
    from resources.store.open_store import GROUP

    added = [
        EntryPoint("mine", "resources.store.duckdb.duckdb_store:DuckDBStore", GROUP),
        EntryPoint("duckdb", "nowhere:Nothing", GROUP),
    ]
    monkeypatch.setattr(plug_ins, "entry_points", lambda group: added if group == GROUP else [])
    for kind in ("mine", "duckdb"):
        assert isinstance(open_store(kind, "default", STAMP, {"path": str(tmp_path / "x")}), DuckDBStore)
