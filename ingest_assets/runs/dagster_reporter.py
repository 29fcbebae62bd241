"""Tells Dagster, and the job, what a run made of its documents: group by group, after the records are published."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from ingest_assets import asset_keys
from ingest_assets.engine.document_report import DocumentReport
from ingest_assets.engine.progress import Onlooker
from ingest_assets.event_log.event_entries import PartitionMaterialized
from ingest_assets.event_log.partition_events import report_failed, report_materialized
from ingest_assets.partitions import DagsterPartitions
from ingest_assets.runs.job_progress import JobProgress
from ingest_assets.runs.page_links import document_link, page_link
from resources.artifact_store.artifact import short_hash
from resources.document_source.document_ids import shown_key
from resources.document_state.ingest_jobs import DocumentResult, Outcome
from resources.document_state.job_records import IngestJobs
from resources.document_state.model import DocStatus

# With a code version and without these, Dagster calls every document "Unsynced: has a new dependency on extracted".
_INPUT_VERSION = f"dagster/input_data_version/{asset_keys.EXTRACTED.to_user_string()}"
_INPUT_EVENT = f"dagster/input_event_pointer/{asset_keys.EXTRACTED.to_user_string()}"
_WITHOUT_PARTITION = frozenset({Outcome.SKIPPED, Outcome.REMOVED})


class DagsterReporter:
    """The engine's reporter for a run of Dagster.

    Attributes:
        progress: what the work is at, for the engine to say.
        outcomes: how many documents ended in each outcome so far.
        failures: the results of those that failed.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        run: dg.DagsterRun,
        jobs: IngestJobs,
        job_id: str | None,
        job_page: int,
        onlooker: Onlooker,
        public_url: str,
    ) -> None:
        self._instance = instance
        self._run = run
        self._partitions = DagsterPartitions(instance)
        self._jobs = jobs
        self._job_id = job_id
        self._job_page = job_page
        self._public_url = public_url
        self._n_groups = 0
        self.progress = JobProgress(instance, run.run_id, jobs, job_id, onlooker)
        self.outcomes: Counter[Outcome] = Counter()
        self.failures: list[DocumentResult] = []

    @property
    def page_link(self) -> Mapping[str, dg.UrlMetadataValue]:
        """Metadata with a link to the job's page, or to that of all jobs."""
        return page_link(self._public_url, f"/jobs/{self._job_id}" if self._job_id else "/jobs")

    async def group_done(self, reports: Sequence[DocumentReport]) -> None:
        """See Reporter."""
        events = [event for report in reports for event in materializations(report, self._public_url)]
        if events:
            self._partitions.add([report.doc.document_id for report in reports if report.doc and _is_shown(report)])
            report_materialized(self._instance, self._run, asset_keys.STEP, events)
        for asset_key, document_ids in _failed_by_asset(reports).items():
            report_failed(self._instance, self._run, asset_keys.STEP, asset_key, document_ids)
        self._partitions.remove([r.result.document_id for r in reports if r.result.status in _WITHOUT_PARTITION])
        results = [report.result for report in reports]
        if self._job_id is not None:
            # Pages are done one after the other, so what is recorded later sorts behind.
            part = f"{self._job_page:06d}/{self._run.run_id}/{self._n_groups:05d}"
            await self._jobs.record(self._job_id, part, results)
        self._n_groups += 1
        self.outcomes.update(result.status for result in results)
        self.failures += [result for result in results if result.status is Outcome.FAILED]


def materializations(report: DocumentReport, public_url: str) -> list[PartitionMaterialized]:
    """What Dagster is to be told of a document that succeeded."""
    doc = report.doc
    if doc is None:
        return []
    events = [extracted_event(doc, public_url, report.result)] if report.extracted else []
    return events + [built_event(doc, slug, public_url) for slug in report.built]


def extracted_event(doc: DocStatus, public_url: str, result: DocumentResult | None = None) -> PartitionMaterialized:
    """The materialization of `extracted`. Its data version is the hash of chunk set and entries.

    It names no code version: Dagster would then compare each document with every source asset, and call all of them
    "Unsynced" as soon as a source is added. What is stale by configuration, the checks say.
    """
    metadata: dict[str, Any] = {
        **_about(doc, public_url),
        "entries": doc.n_entries,
        "characters": doc.n_chars,
        "media_type": doc.media_type,
        "parser": doc.parser,
        "bytes": doc.size,
        "seconds": result.seconds if result else 0.0,
    }
    if result is not None and result.n_calls:
        metadata |= {
            "model calls": result.n_calls,
            "tokens in": result.input_tokens,
            "tokens out": result.output_tokens,
            "cost (USD)": result.micro_usd / 1_000_000,
        }
    if doc.n_pages:
        metadata |= {"pages": doc.n_pages, "pages_without_text": doc.n_empty_pages}
    if doc.warnings:
        metadata["warnings"] = " ".join(doc.warnings)
    return PartitionMaterialized(
        asset_key=asset_keys.EXTRACTED,
        partition=doc.document_id,
        data_version=doc.artifact_hash,
        metadata=metadata,
    )


def built_event(doc: DocStatus, slug: str, public_url: str) -> PartitionMaterialized:
    """The materialization of `built/<slug>`. Its data version is that of `extracted`, embedder and store together."""
    link = doc.links[slug]
    return PartitionMaterialized(
        asset_key=asset_keys.built(slug),
        partition=doc.document_id,
        data_version=short_hash(*(f"{name}={value}" for name, value in sorted(link.parts.items()))),
        code_version=code_version(link.parts),
        metadata={**_about(doc, public_url), "embedder": link.parts.get("embedder", "")},
        tags={_INPUT_VERSION: link.parts.get("content", ""), _INPUT_EVENT: "NULL"},
    )


def _about(doc: DocStatus, public_url: str) -> dict[str, Any]:
    # Not `dagster/row_count`: an asset's page shows that of its last document as the asset's own.
    return {
        "title": doc.title,
        "source": doc.source,
        "document": shown_key(doc.source_uri),
        "chunks": doc.n_chunks,
        **document_link(public_url, doc),
    }


def code_version(parts: Mapping[str, str]) -> str:
    """The configuration's share of a fingerprint, as Dagster's code version of the asset."""
    return short_hash(*(f"{name}={value}" for name, value in sorted(parts.items()) if name != "content"))[:12]


def _is_shown(report: DocumentReport) -> bool:
    return report.extracted or bool(report.built)


def _failed_by_asset(reports: Sequence[DocumentReport]) -> dict[dg.AssetKey, list[str]]:
    found: dict[dg.AssetKey, list[str]] = {}
    for report in reports:
        if report.result.status is not Outcome.FAILED:
            continue
        keys = [asset_keys.built(slug) for slug in report.failed] or [asset_keys.EXTRACTED]
        for key in keys:
            found.setdefault(key, []).append(report.result.document_id)
    return found
