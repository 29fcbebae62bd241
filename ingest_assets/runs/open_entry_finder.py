"""How a run finds entries: with the configured extractor, and if that is paid, on whose account."""

from ingest_assets.components import Components
from ingest_assets.engine.entry_finding import EntryFinder, FreeEntries
from ingest_assets.engine.progress import Progress
from resources.clock import utc_now
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.patience import Patience
from resources.document_state.workers import WorkerWatch

# Whoever waits for money has time. On a machine so busy that a heartbeat misses its lease (seen with 16 runs on two
# processors that 20 others shared), a worker that only is slow must not be ended for it.
_LEASES_OF_PATIENCE = 4


def open_entry_finder(components: Components, worker_id: str, job_id: str, progress: Progress) -> EntryFinder:
    """What finds the entries of a run's documents.

    Args:
        components: the extractor, the journal and the ledger.
        worker_id: whose death settles what is reserved.
        job_id: whose ceiling counts.
        progress: told what batches may cost, and which documents are done.
    """
    extractor = components.extractor
    if not extractor.is_paid:
        return FreeEntries(extractor, progress)
    # Imported late: most projects pay for nothing, and each command would wait for it.
    from ingest_assets.engine.paid_entries import PaidEntries
    from ingest_assets.engine.purse import Purse
    from resources.extractor.llm.llm_extractor import LlmExtractor

    assert isinstance(extractor, LlmExtractor)
    gate, journal, settings = components.spend_gate, components.journal, components.settings
    watch = WorkerWatch(components.backend, _LEASES_OF_PATIENCE * settings.lease)

    async def sweep() -> None:
        # Whoever is found dead here is settled in all else by the sweep of `runs.recovery`.
        await watch.bury()
        await gate.sweep(watch.living_ids, utc_now())

    patience = Patience(
        settings.spend.wait_seconds,
        sweep,
        settings.runs.lease_seconds / 3,
        lambda: progress.enters(JobStage.WAITING),
    )

    def new_purse() -> Purse:
        return Purse(gate, journal, settings.ceilings, patience, job_id, worker_id, extractor.model)

    return PaidEntries(extractor, journal, new_purse, progress)
