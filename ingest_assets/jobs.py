"""The jobs: documents are done, checked, marked as stale where they are, and everything is compared with everything."""

import asyncio

import dagster as dg
import msgspec
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.partitions import documents
from ingest_assets.runs.recovery import recover
from ingest_assets.settings import Settings
from ingest_assets.upkeep.collecting import Collected, collect, remove_old_jobs
from ingest_assets.upkeep.damaged_jobs import remove_damaged_jobs
from ingest_assets.upkeep.marking import Marked, mark
from ingest_assets.upkeep.verify.difference import Differences
from ingest_assets.upkeep.verify.verification import Verification
from resources.clock import utc_now
from resources.dagster_resources import ArtifactStoreResource, DocumentStateStoreResource
from resources.document_state.workers import WorkerWatch

INGEST = "ingest_documents"
CHECK = "check_documents"
MARK = "mark_stale"
GC = "gc"
VERIFY = "verify"
_EXAMPLES = 50


def build_ingest_job(settings: Settings) -> UnresolvedAssetJobDefinition:
    """Extracts and builds documents. Checks are a job of their own: they look at all documents, not at a run's."""
    keys = [asset_keys.EXTRACTED, *(asset_keys.built(store.slug) for store in settings.stores)]
    return dg.define_asset_job(
        INGEST,
        selection=dg.AssetSelection.assets(*keys).without_checks(),
        partitions_def=documents,
        description="Documents through extraction into the stores: what is due, or what the configuration names.",
    )


def build_check_job(settings: Settings) -> UnresolvedAssetJobDefinition:
    """Runs every check."""
    keys = [asset_keys.EXTRACTED, *(asset_keys.built(store.slug) for store in settings.stores)]
    return dg.define_asset_job(
        CHECK,
        selection=dg.AssetSelection.checks_for_assets(*keys),
        description="Compares the records with their artifacts, and each store with the records.",
    )


def build_mark_job(settings: Settings) -> dg.JobDefinition:
    """Marks what the configuration has made stale; `ingest plan --apply` does the same."""

    @dg.op(name="mark", description="A pass over the documents whose labels say that they may differ.")
    def mark_documents(context: dg.OpExecutionContext, document_state: DocumentStateStoreResource) -> None:
        marked = asyncio.run(_mark(Components(settings, document_state.open())))
        context.log.info("Marked %s; unmarked %d; busy %d.", marked.stores, marked.n_current, marked.n_busy)

    @dg.job(
        name=MARK,
        executor_def=dg.in_process_executor,
        description="Marks links as stale whose configuration is another now. Rebuilds nothing: that is on request.",
    )
    def mark_stale() -> None:
        mark_documents()

    return mark_stale


async def _mark(components: Components) -> Marked:
    async with components:
        await components.register_stores()
        return await mark(components.state, await components.configured())


def build_verify_job(settings: Settings) -> dg.JobDefinition:
    """Compares everything with everything; `ingest verify` does the same, and can mend."""

    @dg.op(name="compare_everything", description="Looks at every record, artifact, row of a store and partition.")
    def verify_all(context: dg.OpExecutionContext, document_state: DocumentStateStoreResource) -> None:
        looked = asyncio.run(_verify(Components(settings, document_state.open()), context.instance))
        context.log.info("Compared %d documents; busy %d.", looked.n_documents, looked.n_busy)
        for said in looked.unreadable.values():
            context.log.error(said)
        if looked.found or looked.unreadable:
            shown = [msgspec.to_builtins(found) for found in looked.found[:_EXAMPLES]]
            raise dg.Failure(
                f"{len(looked.found)} differences, {len(looked.unreadable)} stores that cannot be read. "
                "`ingest verify` lists them, --repair mends what differs.",
                metadata={"differences": len(looked.found), "examples": dg.MetadataValue.json(shown)},
                allow_retries=False,
            )

    @dg.job(
        name=VERIFY,
        executor_def=dg.in_process_executor,
        description="Compares records, artifacts, stores and partitions. Fails if something differs; mends nothing.",
    )
    def verify() -> None:
        verify_all()

    return verify


async def _verify(components: Components, instance: dg.DagsterInstance) -> Differences:
    async with components:
        return await Verification(components, await components.targets(), instance).look(None)


def build_gc_job(settings: Settings) -> dg.JobDefinition:
    """Removes artifacts that no document refers to, and old jobs; `ingest gc` does the same."""

    @dg.op(name="collect", description="Goes through records and artifacts; waits for nobody, the next run goes on.")
    def collect_artifacts(
        context: dg.OpExecutionContext, document_state: DocumentStateStoreResource, artifacts: ArtifactStoreResource
    ) -> None:
        components = Components(settings, document_state.open(), artifacts.open())
        done = asyncio.run(_collect(components, context.instance))
        context.log.info("Removed %d artifacts, %d bytes; %d stay.", done.n_artifacts, done.n_bytes, done.n_kept)
        context.log.info("Removed %d old jobs.", done.n_jobs)
        if done.n_workers:
            context.log.info("%d workers have to finish first; the next run goes on.", done.n_workers)
        if done.refused:
            raise dg.Failure("No document refers to any artifact: another state's? Nothing was removed.")
        if done.n_damaged:
            raise dg.Failure(f"{done.n_damaged} records cannot be read. Nothing was removed: `ingest verify --repair`.")

    @dg.job(
        name=GC,
        executor_def=dg.in_process_executor,
        description="Removes artifacts that no document refers to, and old jobs, safely while others work.",
    )
    def gc() -> None:
        collect_artifacts()

    return gc


async def _collect(components: Components, instance: dg.DagsterInstance) -> Collected:
    async with components:
        watch = WorkerWatch(components.backend, components.settings.lease)
        await recover(components, instance, watch)
        keep, now = components.settings.keep_jobs, utc_now()
        n_jobs = await remove_old_jobs(components.jobs, now - keep)
        n_jobs += await remove_damaged_jobs(components.jobs, components.backend, now, keep)
        done = await collect(components.state, components.artifacts, components.backend, lambda _: None)
        done.n_jobs = n_jobs
        return done


def build_schedules(
    check_job: UnresolvedAssetJobDefinition,
    mark_job: dg.JobDefinition,
    verify_job: dg.JobDefinition,
    gc_job: dg.JobDefinition,
) -> list[dg.ScheduleDefinition]:
    """A schedule for each; all are off until somebody turns them on, and an hour apart: each reads every record."""
    return [
        _schedule(gc_job, "daily", "0 2 * * *", "Removes artifacts that no document refers to, every day at two."),
        _schedule(verify_job, "weekly", "0 3 * * 0", "Compares everything, every Sunday at three; repairs nothing."),
        _schedule(mark_job, "daily", "0 4 * * *", "Marks what the configuration has made stale, every day at four."),
        _schedule(check_job, "daily", "0 5 * * *", "All checks, every day at five. They read every record and store."),
    ]


def _schedule(
    job: dg.JobDefinition | UnresolvedAssetJobDefinition, period: str, cron: str, what: str
) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name=f"{job.name}_{period}", job=job, cron_schedule=cron, description=f"{what} Off until you turn it on."
    )
