"""Discovery of one source, as the settings say."""

from ingest_assets.components import Components
from resources.document_source.document_source import DocumentSource
from sensors.listing_snapshot import ListingSnapshots
from sensors.plan import Discovery


def discovery_of(components: Components, source: DocumentSource) -> Discovery:
    """The discovery of one source."""
    return Discovery(
        source,
        components.state,
        ListingSnapshots(components.artifacts),
        [store.slug for store in components.settings.stores],
        components.settings.discovery.max_vanished_share,
    )
