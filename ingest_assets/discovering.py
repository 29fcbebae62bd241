"""Discovery of the sources, as the settings say."""

from datetime import timedelta

from ingest_assets.components import Components
from resources.document_source.document_source import DocumentSource
from sensors.listing import Listings
from sensors.plan import Discovery


def discovery_of(components: Components, source: DocumentSource) -> Discovery:
    """The discovery of one source."""
    settings = components.settings
    return Discovery(
        source,
        components.state,
        listings_of(components),
        [store.slug for store in settings.stores],
        settings.discovery.max_vanished_share,
        timedelta(hours=settings.discovery.vanish_grace_hours),
    )


def listings_of(components: Components) -> Listings:
    """What is known of each source's last listing."""
    reconcile_every = timedelta(hours=components.settings.discovery.reconcile_hours)
    return Listings(components.artifacts, components.backend, reconcile_every)
