"""Takes up what dead workers left: their documents, the events they owed Dagster, their runs, their jobs."""

from collections.abc import Sequence
from datetime import datetime

import dagster as dg
import msgspec

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.event_log.partition_events import report_failed, report_outside_run
from ingest_assets.partitions import DagsterPartitions
from ingest_assets.runs.dagster_reporter import built_event, extracted_event
from ingest_assets.runs.process_tag import runs_of_dead_processes
from ingest_assets.runs.run_tags import RESULT_TAG
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.model import DocStatus, LinkState, Status, is_partition
from resources.document_state.run_tally import RunOutcome
from resources.document_state.workers import WorkerRecord, WorkerWatch

_MESSAGE = "Its process died. The documents it held are taken up again; what it had published is reported."


class Recovered(msgspec.Struct):
    """What a sweep did."""

    workers: int = 0
    documents: int = 0
    events: int = 0
    runs: int = 0
    jobs: int = 0

    def add(self, other: "Recovered") -> None:
        """Count another sweep in."""
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def __bool__(self) -> bool:
        return any(msgspec.structs.astuple(self))


async def recover(components: Components, instance: dg.DagsterInstance, watch: WorkerWatch) -> Recovered:
    """Settle every worker the watch finds dead. Each step repeated changes nothing, so it may die anywhere itself."""
    done = Recovered()
    dead = await watch.bury()
    await _settle_spending(components, watch)
    for worker in dead:
        run = instance.get_run_by_id(worker.run_id) if worker.run_id else None
        done.documents += await _release(components, worker)
        docs = list((await components.state.get_many(worker.claimed)).values())
        DagsterPartitions(instance).remove(
            [doc.document_id for doc in docs if not is_partition(doc.presence, doc.extraction.status)]
        )
        if worker.stage_seconds if run is None else not run.is_success:
            await components.run_tally.add(worker.run_id, _outcome(run), worker.stage_seconds)
        if run is not None:
            done.events += _report_owed(instance, run, docs, components.settings.api.public_url)
            done.runs += _end(instance, run)
        await watch.settle(worker.worker_id)
        done.workers += 1
    done.documents += await _release_ownerless(components, watch)
    for run in runs_of_dead_processes(instance):
        await components.run_tally.add(run.run_id, RunOutcome.DIED, {})
        done.runs += _end(instance, run)
    done.jobs = len(await components.jobs.settle_orphans(utc_now()))
    return done


async def _release(components: Components, worker: WorkerRecord) -> int:
    """Take every document out of a dead worker's hands.

    One that only slept may publish while we look, which refuses our write: we look again until it holds nothing, for
    after this its record goes, and nobody would know of what it still held.
    """
    n_released = 0
    while held := await _held_by(components, worker):
        now: datetime = utc_now()
        stored = await components.state.set_many([(transitions.released(doc, now), doc) for doc in held])
        n_released += sum(doc is not None for doc in stored)
    return n_released


async def _release_ownerless(components: Components, watch: WorkerWatch) -> int:
    """Release claims of workers that have no record.

    A worker that was settled while it slept, and was killed right after it woke and claimed, leaves such a claim. The
    documents are read before the workers: a worker's record is older than its claims.
    """
    claimed = await components.state.list_open(lambda label: label.claimed)
    docs = (await components.state.get_many(claimed)).values()
    known = {worker.worker_id for worker in await watch.all()}
    lost = [doc for doc in docs if doc.claim is not None and doc.claim.worker_id not in known]
    now = utc_now()
    stored = await components.state.set_many([(transitions.released(doc, now), doc) for doc in lost])
    return sum(doc is not None for doc in stored)


async def _settle_spending(components: Components, watch: WorkerWatch) -> None:
    """Put what the dead have spent, or may have spent, in place of what they had reserved."""
    if components.extractor.is_paid or await components.ledger.open_reservations():
        await components.spend_gate.sweep(watch.living_ids, utc_now())


async def _held_by(components: Components, worker: WorkerRecord) -> list[DocStatus]:
    docs = (await components.state.get_many(worker.claimed)).values()
    return [doc for doc in docs if doc.claim is not None and doc.claim.worker_id == worker.worker_id]


def _report_owed(instance: dg.DagsterInstance, run: dg.DagsterRun, docs: Sequence[DocStatus], public_url: str) -> int:
    """Report what the run published and did not live to tell."""
    events = []
    failed: dict[dg.AssetKey, list[str]] = {}
    for doc in docs:
        extracted_here = doc.extraction.run_id == run.run_id
        if extracted_here and doc.extraction.status is Status.COMPLETED:
            events.append(extracted_event(doc, public_url))
        if extracted_here and doc.extraction.status is Status.FAILED:
            failed.setdefault(asset_keys.EXTRACTED, []).append(doc.document_id)
        for slug, link in doc.links.items():
            if link.last_run_id != run.run_id:
                continue
            if link.state is LinkState.INGESTED:
                events.append(built_event(doc, slug, public_url))
            elif link.state is LinkState.FAILED:
                failed.setdefault(asset_keys.built(slug), []).append(doc.document_id)
    owed = report_outside_run(instance, run, asset_keys.STEP, events)
    for asset_key, document_ids in failed.items():
        report_failed(instance, run, asset_keys.STEP, asset_key, document_ids)
    return len(owed)


def _outcome(run: dg.DagsterRun | None) -> RunOutcome:
    """How a run ended of which a worker is left; None: another machine's."""
    if run is None or not run.is_finished:
        return RunOutcome.DIED
    return RunOutcome.INTERRUPTED if run.status is dg.DagsterRunStatus.CANCELED else RunOutcome.FAILED


def _end(instance: dg.DagsterInstance, run: dg.DagsterRun) -> int:
    """Report a run failed unless it has ended; Dagster itself leaves it started for ever."""
    if run.is_finished:
        return 0
    instance.report_run_failed(run, _MESSAGE)
    instance.add_run_tags(run.run_id, {RESULT_TAG: "its process died"})
    return 1
