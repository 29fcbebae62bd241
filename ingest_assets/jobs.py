"""The jobs: one does documents, one looks whether everything is as the records say."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from ingest_assets import asset_keys
from ingest_assets.partitions import documents
from ingest_assets.settings import Settings

INGEST = "ingest_documents"
CHECK = "check_documents"


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


def build_check_schedule(check_job: UnresolvedAssetJobDefinition) -> dg.ScheduleDefinition:
    """The checks once a day, when somebody turns it on: they read every record and every store."""
    return dg.ScheduleDefinition(
        name=f"{CHECK}_daily",
        job=check_job,
        cron_schedule="0 5 * * *",
        description="All checks, every day at five. Off until you turn it on: it reads every record and every store.",
    )
