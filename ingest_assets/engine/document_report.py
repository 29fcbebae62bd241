"""What a run says of one document: to Dagster the record as published, to the job the result."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ingest_assets.engine.extraction_outcome import Extraction
from resources.document_source.document_ids import shown_key
from resources.document_state.ingest_jobs import DocumentResult, Outcome
from resources.document_state.model import DocStatus
from resources.document_state.reasons import Reason


class DocumentReport(msgspec.Struct, frozen=True):
    """What a run made of one document: the record as published, for Dagster, and the result, for the job.

    Attributes:
        doc: the record now; None if nobody knows the document, or its record cannot be read.
        result: what the job says of it.
        extracted: its extraction is complete as of this run, or is to be reported again.
        built: stores it stands in as of this run, or which are to be reported again.
        failed: stores that could not be written.
    """

    doc: DocStatus | None
    result: DocumentResult
    extracted: bool = False
    built: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Reporter(Protocol):
    """Whoever wants to know what a run does."""

    async def group_done(self, reports: Sequence[DocumentReport]) -> None:
        """A group is published. What must be told elsewhere has been told when this returns."""


def report_of(doc: DocStatus, outcome: Outcome, run_id: str) -> DocumentReport:
    """The report of a document whose run ended in `outcome` for it."""
    failing = doc.extraction if doc.extraction.reason is not None else doc.build
    told = outcome in (Outcome.FAILED, Outcome.SKIPPED, Outcome.PENDING)
    result = DocumentResult(
        doc.document_id,
        doc.source_uri,
        shown_key(doc.source_uri),
        outcome,
        run_id,
        failing.reason if told else None,
        failing.error if told else "",
        doc.n_chunks,
        doc.n_entries,
        knowledge_document_id=doc.artifact if outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED) else "",
    )
    return DocumentReport(doc, result)


def with_extraction(report: DocumentReport, extraction: Extraction | None) -> DocumentReport:
    """A report with what the document's extraction took in this run; None: it was not looked at."""
    if extraction is None:
        return report
    bill, artifact = extraction.bill, extraction.artifact
    result = msgspec.structs.replace(
        report.result,
        seconds=round(extraction.seconds, 3),
        n_void_corrections=len(artifact.void_corrections) if artifact else 0,
        n_calls=bill.n_calls,
        input_tokens=bill.input_tokens,
        output_tokens=bill.output_tokens,
        micro_usd=bill.micro_usd,
    )
    return msgspec.structs.replace(report, result=result)


def report_unknown(document_id: str, run_id: str) -> DocumentReport:
    """The report of an id that somebody named and nobody knows."""
    return _report_without_record(document_id, run_id, Reason.UNKNOWN_DOCUMENT, "No record has this id.")


def report_damaged(document_id: str, run_id: str) -> DocumentReport:
    """The report of a document whose record cannot be read; nothing is done to it, and nothing written."""
    return _report_without_record(document_id, run_id, Reason.RECORD_DAMAGED, "Its record cannot be read.")


def _report_without_record(document_id: str, run_id: str, reason: Reason, error: str) -> DocumentReport:
    return DocumentReport(None, DocumentResult(document_id, "", document_id, Outcome.FAILED, run_id, reason, error))
