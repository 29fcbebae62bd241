"""Every store there is: those of the configuration, and those that only a record knows of."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from ingest_assets.components import Components
from ingest_assets.targets import declared_stores
from ingest_assets.upkeep.settling import doubtful_stores
from resources.document_state.link_counts import count_links


class ListedStore(msgspec.Struct, frozen=True):
    """One store.

    Attributes:
        slug, name, kind, is_default: as they are configured, or were.
        embedder: the one of its data, or of what is written into it first.
        configured_embedder: the one the configuration means; another than `embedder` until the store is made anew.
        config: its options; None: they may hold a secret, or are not recorded.
        created_at: when it was first recorded; None: it was not yet.
        configured: whether it is in the configuration.
        doubtful: whether it may hold something else than `links` say: the next run compares it with the records.
        last_push_at: when a document was last written into it; None: it is empty, or that is not known.
        links: how many documents are in it, by state.
    """

    slug: str
    name: str
    kind: str
    embedder: str
    configured_embedder: str
    config: dict[str, Any] | None
    created_at: datetime | None
    last_push_at: datetime | None
    is_default: bool
    configured: bool
    doubtful: bool
    links: Counter[str]


async def list_stores(components: Components, pushed: Mapping[str, datetime]) -> list[ListedStore]:
    """The configured stores in their order, then the others by slug.

    Args:
        components: for configuration and records.
        pushed: when a document was last written into each, by slug.
    """
    records = await components.store_registry.all()
    counts = await count_links(components.state)
    doubtful = await doubtful_stores(components)
    listed = []
    for store in declared_stores(components.settings):
        record = records.pop(store.slug, None)
        recorded = record.embedder if record else store.embedder or components.settings.default_embedder
        listed.append(
            ListedStore(
                store.slug,
                store.name,
                store.kind,
                recorded,
                store.embedder or recorded,
                store.config,
                record.created_at if record else None,
                pushed.get(store.slug),
                is_default=store.is_default,
                configured=True,
                doubtful=store.slug in doubtful,
                links=Counter(counts.get(store.slug, {})),
            )
        )
    listed += [
        ListedStore(
            record.slug,
            record.name,
            record.kind,
            record.embedder,
            "",
            record.config,
            record.created_at,
            pushed.get(record.slug),
            is_default=False,
            configured=False,
            doubtful=False,
            links=Counter(counts.get(record.slug, {})),
        )
        for record in records.values()
    ]
    return listed
