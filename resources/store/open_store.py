"""Which kinds of store there are, and how one is had by its kind.

| kind | where documents go |
|---|---|
| `duckdb` | one file on this machine, exact search; options `path`, `lock_timeout` (seconds), `memory_limit` |
| `pgvector` | a PostgreSQL, exact search; options `url` or `dsn_env`, `schema`, `statement_timeout`, `lock_timeout` |
| `opensearch` | an OpenSearch, exact search by default; options `url`, `search` and others (docs/stores.md) |

More can be added by packages that name a `Store` class in the entry point group `ingest_assets.stores`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from resources.plug_ins import PlugIns, UnknownPlugInError
from resources.store.store import EmbedderStamp, Store, StoreConfigError

GROUP = "ingest_assets.stores"
_KINDS = PlugIns(
    GROUP,
    {
        "duckdb": "resources.store.duckdb.duckdb_store:DuckDBStore",
        "pgvector": "resources.store.pgvector.pgvector_store:PgvectorStore",
        "opensearch": "resources.store.opensearch.opensearch_store:OpenSearchStore",
    },
)


def open_store(kind: str, slug: str, stamp: EmbedderStamp, config: Mapping[str, Any]) -> Store:
    """Make the store called `slug` from its part of the configuration. Nothing is opened or written yet.

    Raises:
        StoreConfigError: an unknown kind or option, or a value of the wrong type; the message lists what is known.
    """
    store = _class_of(kind, slug)
    known = [field.encode_name for field in msgspec.structs.fields(store.Config)]
    unknown = sorted(config.keys() - set(known))
    if unknown:
        raise StoreConfigError(
            slug, f"unknown option '{unknown[0]}' for kind '{kind}'. Known: {', '.join(sorted(known))}."
        )
    try:
        options = msgspec.convert(dict(config), store.Config)
    except msgspec.ValidationError as error:
        raise StoreConfigError(slug, f"configuration of kind '{kind}': {error}.") from error
    return store.from_config(slug, stamp, options)


def shown_config(kind: str, slug: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The options of a store that `open_store` takes, if they are certain to hold no secret; None: they may.

    Raises:
        StoreConfigError: an unknown kind.
    """
    return dict(config) if _class_of(kind, slug).config_is_shown else None


def _class_of(kind: str, slug: str) -> type[Store]:
    try:
        store: type[Store] = _KINDS.load(kind)
    except UnknownPlugInError as error:
        raise StoreConfigError(slug, f"unknown store kind '{kind}'. {error}") from error
    except ModuleNotFoundError as error:
        raise StoreConfigError(
            slug,
            f"kind '{kind}' needs the package '{error.name}', which is not installed. "
            f"For a kind of this program: pip install 'ingest-assets[{kind}]'.",
        ) from error
    return store
