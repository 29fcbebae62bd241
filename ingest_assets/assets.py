"""The assets: every document's extraction, and its place in each store, made by one step that streams documents."""

import gc
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

import dagster as dg
from pydantic import Field

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.engine.building import BuildStage
from ingest_assets.engine.extraction import ExtractionStage
from ingest_assets.engine.ingest_run import IngestRun
from ingest_assets.engine.run_context import RunContext
from ingest_assets.engine.selection import Selection
from ingest_assets.event_log.partition_events import forget_cached_statuses
from ingest_assets.parsing import ParserPool
from ingest_assets.partitions import documents
from ingest_assets.paying import open_entry_finder
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.runs.dagster_reporter import DagsterReporter, code_version
from ingest_assets.runs.interruption import run_interruptibly
from ingest_assets.runs.page_links import page_link
from ingest_assets.runs.run_outcome import check_ceiling, log_outcome, raise_if_failed, tag_run
from ingest_assets.settings import Settings
from ingest_assets.targets import declared_stores, link_parts
from resources.dagster_resources import ArtifactStoreResource, DocumentStateStoreResource
from resources.document_state.document_state_store import utc_now
from resources.document_state.store_registry import DeclaredStore
from resources.document_state.take_up import Mode, is_taken_up
from resources.document_state.workers import Heartbeat, Worker
from resources.records.copying import refuse_unfinished

FORCE_TAG = "ingest/force"
_SCATTERED = (
    "To try scattered documents again, use `ingest retry DOCUMENT…`: Dagster splits a scattered backfill into one run "
    "for each contiguous range."
)


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


def build_source_assets(settings: Settings) -> list[dg.AssetSpec]:
    """Each declared source as an external asset, upstream of everything."""
    public_url = settings.api.public_url
    return [
        dg.AssetSpec(
            asset_keys.source(name),
            group_name="sources",
            kinds={source.kind},
            description="Where documents come from. A sensor lists it.",
            metadata={"dagster/uri": source.uri, **page_link(public_url, f"/?source={quote(name)}")},
        )
        for name, source in settings.open_sources().items()
    ]


def build_document_assets(
    settings: Settings, on_progress: Callable[[int], None] = lambda _: None
) -> dg.AssetsDefinition:
    """`extracted` and a `built/<store>` for each store, partitioned by document.

    Args:
        settings: the configuration.
        on_progress: called with the number of documents done, in the process that does them.
    """
    public_url = settings.api.public_url
    built = [
        dg.AssetSpec(
            asset_keys.built(store.slug),
            deps=[asset_keys.EXTRACTED],
            group_name="stores",
            kinds={store.kind},
            owners=["team:ingest"],
            code_version=_store_code_version(store),
            description=f"Documents in the store '{store.name}', searchable. {_SCATTERED}",
            metadata={
                "store": store.name,
                "kind": store.kind,
                "is_default": store.is_default,
                **page_link(public_url, "/stores"),
            },
            skippable=True,
        )
        for store in declared_stores(settings)
    ]
    extracted = dg.AssetSpec(
        asset_keys.EXTRACTED,
        deps=[asset_keys.source(source.name) for source in settings.sources],
        group_name="documents",
        kinds={"python"},
        owners=["team:ingest"],
        code_version=code_version(Components(settings).extraction_parts),
        description=f"Chunks and knowledge entries of each document. {_SCATTERED}",
        metadata=page_link(public_url, "/"),
        skippable=True,
    )

    @dg.multi_asset(
        name=asset_keys.STEP,
        specs=[extracted, *built],
        partitions_def=documents,
        # Dagster's default is a run for each partition, and each run takes 4 s to start.
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    def ingest(
        context: dg.AssetExecutionContext,
        config: IngestConfig,
        document_state: DocumentStateStoreResource,
        artifacts: ArtifactStoreResource,
    ) -> Iterator[dg.MaterializeResult[None]]:
        opened = Components(settings, document_state.open(), artifacts.open())
        try:
            reporter = run_interruptibly(_ingest(context, config, opened, on_progress))
        except dg.DagsterExecutionInterruptedError:
            # Ctrl-C or SIGTERM: without a word from us Dagster counts it as a failure.
            context.instance.report_run_canceling(context.run)
            raise
        log_outcome(context.log, reporter)
        check_ceiling(context.instance, reporter)
        tag_run(context.instance, context.run, _kind(context, config), reporter)
        raise_if_failed(reporter, settings.runs.fail_run_on)
        yield from ()  # every document's materialization has been reported already, in batches

    return ingest


def _store_code_version(store: DeclaredStore) -> str | None:
    """The code version of a store's asset; None, which Dagster compares with nothing, if only a record knows it."""
    return code_version(link_parts(store.embedder, store.kind)) if store.embedder else None


async def _ingest(
    context: dg.AssetExecutionContext,
    config: IngestConfig,
    components: Components,
    on_progress: Callable[[int], None],
) -> DagsterReporter:
    settings = components.settings
    # What is loaded by now stays: looking through it again and again for garbage cost a fifth of the time of a run.
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
    components.extractor.check()
    async with components:
        job_id = await _open_job(components, config)
        reporter = DagsterReporter(
            context.instance,
            context.run,
            components.jobs,
            job_id,
            config.job_page,
            on_progress,
            settings.api.public_url,
        )
        await refuse_unfinished(components.backend)
        await components.register_stores()
        worker = await Worker.register(components.backend, context.run_id, utc_now(), settings.lease)
        stages = reporter.progress
        entries = open_entry_finder(components, worker.worker_id, job_id or context.run_id, stages)
        async with stages:
            with (
                Heartbeat(worker, settings.lease / 3),
                ParserPool(settings.parser_workers, settings.parse_limits, settings.parser_chunking) as pool,
            ):
                extraction = ExtractionStage(
                    await components.sources(),
                    pool,
                    entries,
                    components.artifacts,
                    components.extraction_parts,
                    settings.limits.file_bytes,
                    stages,
                )
                run = RunContext(
                    worker,
                    await _selection(context, config, components),
                    components.state,
                    components.artifacts,
                    components.journal,
                    extraction,
                    {slug: BuildStage(target) for slug, target in (await components.targets()).items()},
                    settings.retry_policy,
                )
                engine = IngestRun(run, reporter, settings.runs.group)
                chosen = await _chosen(context, config, components)
                if chosen is None:
                    await engine.pull(config.limit)
                else:
                    await engine.work_on(chosen)
        await worker.end()
        if not await components.state.list_due(utc_now(), 1):
            # The last run of many: whatever its page counted wrong while they wrote, it counts again.
            forget_cached_statuses(context.instance, context.assets_def.keys)
    return reporter


async def _open_job(components: Components, config: IngestConfig) -> str | None:
    """The job that gets the results; one that is settled, as of a run that the UI executes again, gets no more."""
    if not config.job_id or (await components.jobs.get(config.job_id)).is_terminal:
        return None
    await components.jobs.start(config.job_id, utc_now())
    return config.job_id


def _has_partitions(context: dg.AssetExecutionContext) -> bool:
    return bool(context.has_partition_key or context.has_partition_key_range)


def _kind(context: dg.AssetExecutionContext, config: IngestConfig) -> str:
    if _has_partitions(context):
        return "range"
    return "list" if config.job_id or config.document_ids else "pull"


async def _chosen(
    context: dg.AssetExecutionContext, config: IngestConfig, components: Components
) -> Sequence[str] | None:
    """The documents a run was told to do; None: whatever is due."""
    if _has_partitions(context):
        return list(context.partition_keys)
    if config.job_id:
        return await components.jobs.documents(config.job_id, config.job_page)
    return config.document_ids or None


async def _selection(context: dg.AssetExecutionContext, config: IngestConfig, components: Components) -> Selection:
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
