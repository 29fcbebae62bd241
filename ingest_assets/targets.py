"""The stores documents are built into, each opened with the embedder it has by its record."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest_assets.settings import Settings
from ingest_assets.settings_sections import IN_A_FILE
from resources.document_state.store_registry import DeclaredStore, StoreRecord
from resources.embedder.embedder import Embedder
from resources.embedder.open_embedder import open_embedder, stamp_of
from resources.store.open_store import open_store, shown_config
from resources.store.store import Store, StoreConfigError


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
        StoreConfigError: the configuration of one is wrong, or shows a secret; or two are one file.
    """
    _slugs_by_file(settings)
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

    Raises:
        StoreConfigError: as `declared_stores` does.
    """
    _slugs_by_file(settings)
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


def renamed_to(settings: Settings, record: StoreRecord) -> str:
    """The configured store whose file is that of one that is configured no more; "" for none."""
    if record.kind != IN_A_FILE or record.config is None:
        return ""
    return _slugs_by_file(settings).get(settings.duckdb_file(record.slug, record.config).resolve(), "")


def _slugs_by_file(settings: Settings) -> dict[Path, str]:
    """The stores that are files.

    Raises:
        StoreConfigError: two are one: what is dropped from one would be gone from the other, untold.
    """
    found: dict[Path, str] = {}
    for store in settings.stores:
        if store.kind == IN_A_FILE:
            path = settings.duckdb_file(store.slug, store.config)
            other = found.setdefault(path.resolve(), store.slug)
            if other != store.slug:
                raise StoreConfigError(
                    store.slug, f"its file {path} is that of store '{other}'. Give it one of its own."
                )
    return found


def _open(settings: Settings, kind: str, slug: str, embedder: str, config: Mapping[str, Any]) -> Store:
    options = dict(config)
    if kind == IN_A_FILE and isinstance(options.get("path", ""), str):
        options["path"] = str(settings.duckdb_file(slug, config))
    return open_store(kind, slug, stamp_of(embedder), options)
