"""The first phase of a batch: its documents are extracted, and their records say so.

Artifacts are durable before a record points to them.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ingest_assets.engine.claims import Batch, Claims
from ingest_assets.engine.document_report import with_extraction
from ingest_assets.engine.extraction_outcome import Extraction
from ingest_assets.engine.run_context import RunContext
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.corrections import corrections_of
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.artifact_summary import summary_of
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import DocStatus, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import HELD_BACK_FOR

# Nobody can mend these in the document itself: its type is simply not read.
_SKIPPING = frozenset({Reason.UNSUPPORTED_TYPE, Reason.ARCHIVE})
_OUTCOMES = {Status.SKIPPED: Outcome.SKIPPED, Status.PENDING: Outcome.PENDING}


class Extracted(msgspec.Struct, frozen=True):
    """The documents of a batch that go on to be built.

    Attributes:
        docs: their records, as published.
        artifacts: what the stores need of them, by document id.
        extractions: of those that were looked at in this run, what came of it, by document id.
    """

    docs: list[DocStatus]
    artifacts: dict[str, Artifact]
    extractions: dict[str, Extraction]


class ExtractionPhase:
    """Takes batches through their extraction, and publishes it.

    Attributes:
        is_held_back: a ceiling of spending has held back a batch; the next ones most likely would be as well.
    """

    def __init__(self, run: RunContext, claims: Claims) -> None:
        self._run = run
        self._claims = claims
        self.is_held_back = False

    async def begin(self, batch: Batch) -> None:
        """Start what can go on by itself: reading and parsing."""
        await self._load_artifacts(batch)
        to_extract = [
            doc for doc in batch.docs if doc.presence is Presence.PRESENT and doc.document_id not in batch.artifacts
        ]
        if to_extract:
            batch.extraction = self._run.extraction.begin(to_extract, force=self._run.selection.force)

    async def finish(self, batch: Batch) -> Extracted:
        """Publish what extraction ended in. Documents that end here get their report in the batch."""
        extractions: list[Extraction] = []
        if batch.extraction is not None:
            extractions = await self._run.extraction.finish(batch.extraction, self._publish_part)
        kept, extractions = await self._kept_artifacts(extractions)
        by_id = {extraction.doc.document_id: extraction for extraction in extractions}
        only_built = [doc for doc in batch.present if doc.document_id not in by_id]
        published = await self._publish(batch, extractions)
        made = {key: extraction.artifact for key, extraction in by_id.items() if extraction.artifact}
        return Extracted(only_built + published, batch.artifacts | kept | made, by_id)

    async def _load_artifacts(self, batch: Batch) -> None:
        """The artifacts of documents that only need to be built; one whose artifact is lost is to be extracted."""
        extracted = [doc for doc in batch.present if doc.extraction.status is Status.COMPLETED]
        found = await asyncio.to_thread(self._run.artifacts.get_many, [doc.artifact for doc in extracted])
        batch.artifacts = {doc.document_id: found[doc.artifact] for doc in extracted if doc.artifact in found}
        now = utc_now()
        lost = [doc for doc in extracted if doc.document_id not in batch.artifacts]
        stored = await self._run.publish([(transitions.artifact_lost(doc, now), doc) for doc in lost])
        renewed = {doc.document_id: new for doc, new in zip(lost, stored, strict=True)}
        taken = [doc for doc in lost if renewed[doc.document_id] is None]
        batch.reports += [self._run.report(doc, Outcome.BUSY) for doc in taken]
        await self._claims.let_go({doc.document_id for doc in taken})
        batch.docs = [doc for old in batch.docs if (doc := renewed.get(old.document_id, old)) is not None]

    async def _kept_artifacts(self, extractions: list[Extraction]) -> tuple[dict[str, Artifact], list[Extraction]]:
        """The artifacts stores need of unchanged documents; a document whose artifact is lost is extracted anew."""
        reused = [found.doc for found in extractions if found.unchanged and self._needs_build(found.doc)]
        kept = await asyncio.to_thread(self._run.artifacts.get_many, [doc.artifact for doc in reused])
        lost = [doc for doc in reused if doc.artifact not in kept]
        if lost:
            stage = self._run.extraction
            anew = await stage.finish(stage.begin(lost, force=True), self._publish_part)
            again = {found.doc.document_id: found for found in anew}
            extractions = [again.get(found.doc.document_id, found) for found in extractions]
        return {doc.document_id: kept[doc.artifact] for doc in reused if doc.artifact in kept}, extractions

    def _needs_build(self, doc: DocStatus) -> bool:
        return any(self._run.needs_write(doc, slug) for slug in self._run.selection.stores if slug in doc.due_in)

    async def _publish(self, batch: Batch, extractions: Sequence[Extraction]) -> list[DocStatus]:
        """Publish what extraction ended in; gives the documents that go on to be built."""
        now = utc_now()
        stored = await self._run.publish([(self._paid(extraction, now), extraction.doc) for extraction in extractions])
        go_on = []
        for extraction, doc in zip(extractions, stored, strict=True):
            if doc is None:
                batch.reports.append(self._run.report(extraction.doc, Outcome.BUSY))
            elif extraction.reason is None:
                go_on.append(doc)
            else:
                self.is_held_back |= extraction.reason is Reason.SPEND_CEILING
                outcome = _OUTCOMES.get(doc.extraction.status, Outcome.FAILED)
                batch.reports.append(with_extraction(self._run.report(doc, outcome), extraction))
        return go_on

    async def _publish_part(self, extraction: Extraction) -> bool:
        """Publish what is extracted so far of a conversation; False: it is not ours any more."""
        [stored] = await self._run.publish([(self._paid(extraction, utc_now()), extraction.doc)])
        if stored is None:
            return False
        extraction.doc, extraction.booked = stored, extraction.bill
        return True

    def _paid(self, extraction: Extraction, now: datetime) -> DocStatus:
        """What extraction ended in, and what the document has cost so far."""
        extracted = self._extracted(extraction, now)
        cost = extraction.doc.spent_micro_usd + extraction.bill.micro_usd - extraction.booked.micro_usd
        return msgspec.structs.replace(extracted, spent_micro_usd=cost)

    def _extracted(self, extraction: Extraction, now: datetime) -> DocStatus:
        doc, artifact = extraction.as_read, extraction.artifact
        if extraction.reason in _SKIPPING:
            return transitions.extraction_skipped(doc, extraction.reason, extraction.error, now)
        if extraction.reason is Reason.SPEND_CEILING:
            return transitions.held_back(doc, extraction.reason, extraction.error, now, now + HELD_BACK_FOR)
        if extraction.reason is not None:
            return transitions.extraction_failed(doc, extraction.reason, extraction.error, now, self._run.retry_policy)
        if artifact is None:
            return transitions.extracted_as_before(doc, now, extraction.content_version)
        return transitions.extracted(
            doc,
            summary_of(artifact, extraction.artifact_key, extraction.n_pages, extraction.n_empty_pages),
            now,
            parts=artifact.parts,
            content_version=extraction.content_version,
            n_corrections=len(corrections_of(artifact)),
            last_turn=extraction.last_turn,
            is_whole=extraction.is_whole,
            building=self._run.selection.stores,
        )
