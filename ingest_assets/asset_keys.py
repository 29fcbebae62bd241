"""The names of the assets."""

import dagster as dg

STEP = "ingest"
EXTRACTED = dg.AssetKey("extracted")


def built(slug: str) -> dg.AssetKey:
    """The asset of a store."""
    return dg.AssetKey(["built", slug])


def source(name: str) -> dg.AssetKey:
    """The asset of a source."""
    return dg.AssetKey(["source", name])
