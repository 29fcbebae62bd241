"""The stores documents are built into, each opened with the embedder it has by its record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingest_assets.settings import Settings
from resources.document_state.store_registry import DeclaredStore, StoreRecord
from resources.embedder.embedder import Embedder
from resources.embedder.open_embedder import open_embedder, stamp_of
from resources.local_path import local_path
from resources.store.open_store import open_store, shown_config
from resources.store.store import Store


@dataclass(frozen=True)
class Target:
    """A store with the embedder it is built with."""

    store: Store
    embedder: Embedder
    parts: Mapping[str, str]  # the configuration's share of a link's fingerprint


def link_parts(embedder: str, kind: str) -> dict[str, str]:
    """The configuration's share of a link's fingerprint."""
    stamp = stamp_of(embedder)
    return {"embedder": f"{stamp.name} {stamp.version}", "store": kind}


def declared_stores(settings: Settings) -> list[DeclaredStore]:
    """The stores of the configuration, as records follow them.

    Raises:
        StoreConfigError: the configuration of one is wrong, or shows a secret.
    """
    declared = []
    for store in settings.stores:
        _open(settings, store.kind, store.slug, store.embedder or settings.default_embedder, store.config)
        declared.append(
            DeclaredStore(
                store.slug,
                store.name or store.slug,
                store.kind,
                store.embedder,
                shown_config(store.kind, store.slug, store.config),
                is_default=store.slug == settings.default_store,
            )
        )
    return declared


def open_targets(settings: Settings, records: Mapping[str, StoreRecord]) -> dict[str, Target]:
    """Every configured store, by slug. Nothing is asked of any.

    The embedder is the one the configuration names, else the recorded one, else what would be recorded now.
    """
    found = {}
    for store in settings.stores:
        recorded = records[store.slug].embedder if store.slug in records else settings.default_embedder
        name = store.embedder or recorded
        opened = _open(settings, store.kind, store.slug, name, store.config)
        found[store.slug] = Target(opened, open_embedder(name), link_parts(name, store.kind))
    return found


def open_recorded(settings: Settings, record: StoreRecord) -> Store | None:
    """A store that is configured no more, by its record; None: the record does not say where it is."""
    if record.config is None:
        return None
    return _open(settings, record.kind, record.slug, record.embedder, record.config)


def _open(settings: Settings, kind: str, slug: str, embedder: str, config: Mapping[str, Any]) -> Store:
    options = dict(config)
    if kind == "duckdb":
        options["path"] = (
            str(local_path(settings.base, options["path"]))
            if "path" in options
            else str(settings.data_path / "stores" / f"{slug}.duckdb")
        )
    return open_store(kind, slug, stamp_of(embedder), options)
