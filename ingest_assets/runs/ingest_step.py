"""The one step of a run of Dagster: its parts are put together, and the engine does the work."""

import gc

import dagster as dg

from ingest_assets.components import Components
from ingest_assets.engine.build_stage import BuildStage
from ingest_assets.engine.entry_finding import EntryFinder
from ingest_assets.engine.extraction_stage import ExtractionStage
from ingest_assets.engine.ingest_run import IngestRun
from ingest_assets.engine.progress import Onlooker, Progress
from ingest_assets.engine.run_context import RunContext
from ingest_assets.engine.selection import Selection
from ingest_assets.event_log.partition_events import forget_cached_statuses
from ingest_assets.parsing import ParserPool
from ingest_assets.runs.dagster_reporter import DagsterReporter
from ingest_assets.runs.open_entry_finder import open_entry_finder
from ingest_assets.runs.run_input import IngestConfig, chosen_documents, open_job, selection_of
from ingest_assets.runs.run_outcome import outcome_of
from ingest_assets.upkeep.settling import settle_stores
from resources.clock import utc_now
from resources.document_state.workers import Heartbeat, Worker
from resources.records.copying import refuse_unfinished


async def ingest_documents(
    context: dg.AssetExecutionContext,
    config: IngestConfig,
    components: Components,
    onlooker: Onlooker,
) -> DagsterReporter:
    """Do what a run is to do, as one worker; gives what it reported.

    Args:
        context: the run.
        config: what it works on, unless its partitions say so.
        components: what the work needs; closed when this returns.
        onlooker: told how it goes on, in the process that does it.
    """
    settings = components.settings
    _keep_what_is_loaded()
    components.extractor.check()
    async with components:
        job_id = await open_job(components, config)
        reporter = DagsterReporter(
            context.instance,
            context.run,
            components.jobs,
            job_id,
            config.job_page,
            onlooker,
            settings.api.public_url,
        )
        await refuse_unfinished(components.backend)
        await components.register_stores()
        await settle_stores(components, context.log.info)
        stages = reporter.progress
        worker = await Worker.register(
            components.backend, context.run_id, utc_now(), settings.lease, stages.clock.seconds
        )
        entries = open_entry_finder(components, worker.worker_id, job_id or context.run_id, stages)
        async with stages:
            with (
                Heartbeat(worker, settings.lease / 3),
                ParserPool(settings.parser_workers, settings.parse_limits, settings.parser_chunking) as pool,
            ):
                selection = await selection_of(context, config, components)
                run = await _run_context(components, worker, selection, pool, entries, stages)
                engine = IngestRun(run, reporter, settings.runs.group)
                chosen = await chosen_documents(context, config, components)
                if chosen is None:
                    await engine.pull(config.limit)
                else:
                    await engine.work_on(chosen)
        await components.run_tally.add(context.run_id, outcome_of(reporter), stages.clock.seconds())
        await worker.end()
        if not await components.state.list_due(utc_now(), 1):
            # The last run of many: whatever its page counted wrong while they wrote, it counts again.
            forget_cached_statuses(context.instance, context.assets_def.keys)
    return reporter


async def _run_context(
    components: Components,
    worker: Worker,
    selection: Selection,
    pool: ParserPool,
    entries: EntryFinder,
    progress: Progress,
) -> RunContext:
    """What the engine works with."""
    settings = components.settings
    extraction = ExtractionStage(
        await components.sources(),
        pool,
        entries,
        components.artifacts,
        components.extraction_parts,
        settings.limits.file_bytes,
        progress,
    )
    return RunContext(
        worker,
        selection,
        components.state,
        components.artifacts,
        components.journal,
        extraction,
        {slug: BuildStage(target) for slug, target in (await components.targets()).items()},
        settings.retry_policy,
        progress,
    )


def _keep_what_is_loaded() -> None:
    """What is loaded by now stays: looking through it again and again for garbage cost a fifth of a run's time."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
