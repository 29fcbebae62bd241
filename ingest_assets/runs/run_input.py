"""What a run of Dagster is to work on: by its partitions, its configuration, its tags, and the assets selected."""

from collections.abc import Sequence

import dagster as dg
from pydantic import Field

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.engine.selection import Selection
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.runs.run_tags import FORCE_TAG
from resources.clock import utc_now
from resources.document_state.take_up import Mode, is_taken_up


class IngestConfig(dg.Config):
    """What a run works on. Without any of these, and without a partition: due documents, up to `limit`."""

    limit: int = 1000
    document_ids: list[str] = Field(default_factory=list)
    job_id: str = ""
    job_page: int = 0
    mode: Mode = Mode.INCREMENTAL
    force: bool = False
    asked: str = ""
    stores: list[str] = Field(default_factory=list)


async def open_job(components: Components, config: IngestConfig) -> str | None:
    """The job that gets the results; one that is settled, as of a run that the UI executes again, gets no more."""
    if not config.job_id or (await components.jobs.get(config.job_id)).is_terminal:
        return None
    await components.jobs.start(config.job_id, utc_now())
    return config.job_id


def _has_partitions(context: dg.AssetExecutionContext) -> bool:
    return bool(context.has_partition_key or context.has_partition_key_range)


def kind_of(context: dg.AssetExecutionContext, config: IngestConfig) -> str:
    """What decides what a run works on: a range of partitions, a list of documents, or what is due (a pull run)."""
    if _has_partitions(context):
        return "range"
    return "list" if config.job_id or config.document_ids else "pull"


async def chosen_documents(
    context: dg.AssetExecutionContext, config: IngestConfig, components: Components
) -> Sequence[str] | None:
    """The documents a run was told to do; None: whatever is due."""
    if _has_partitions(context):
        return list(context.partition_keys)
    if config.job_id:
        return await components.jobs.documents(config.job_id, config.job_page)
    return config.document_ids or None


async def selection_of(context: dg.AssetExecutionContext, config: IngestConfig, components: Components) -> Selection:
    """What of its documents a run may do."""
    stores = tuple(slug for slug in await components.targets() if asset_keys.built(slug) in context.selected_asset_keys)
    force = config.force or context.run.tags.get(FORCE_TAG) == "true"
    if _has_partitions(context) or config.document_ids:
        return Selection(stores, force=force, named=True, renew_stores=True)
    if config.job_id and config.asked:
        for slug in config.stores:
            await components.target(slug)  # a run that the UI executes again may name one that is no longer configured
        return Asked(Kind(config.asked), tuple(config.stores)).selection(await components.configured())
    if config.job_id:
        return Selection(stores, force=force, wants=lambda doc: force or is_taken_up(doc, config.mode, utc_now()))
    return Selection(stores)
