"""What is done to a batch of claimed documents: extracted, built into each store, or removed, and published.

Artifacts are durable before a record points to them, and a store is written before a link says so.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from ingest_assets.engine.building import BuildStage, Built, Trust
from ingest_assets.engine.claims import Batch, Claims, Selection
from ingest_assets.engine.document_report import DocumentReport, report_of
from ingest_assets.engine.extraction import ExtractionStage
from ingest_assets.engine.extraction_outcome import Extraction
from ingest_assets.engine.outrunning import touch_store
from ingest_assets.engine.removing import RemovalStage
from resources.artifact_store.artifact import Artifact, artifact_hash
from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.corrections import corrections_of, warnings_of
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.document_state import links as link_states
from resources.document_state import transitions
from resources.document_state.document_state_store import Change, DocumentStateStore, utc_now
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import DocStatus, DocumentStoreLink, LinkState, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import HELD_BACK_FOR, RetryPolicy
from resources.document_state.workers import Worker

# Nobody can mend these in the document itself: its type is simply not read.
_SKIPPING = frozenset({Reason.UNSUPPORTED_TYPE, Reason.ARCHIVE})
_OUTCOMES = {Status.SKIPPED: Outcome.SKIPPED, Status.PENDING: Outcome.PENDING}


class BatchWork:
    """Takes batches through their stages, as one worker.

    Attributes:
        is_held_back: a ceiling of spending has held back a batch; the next ones most likely would be as well.
    """

    def __init__(
        self,
        state: DocumentStateStore,
        artifacts: ArtifactStore,
        journal: PaidResultJournal,
        extraction: ExtractionStage,
        builds: Mapping[str, BuildStage],
        policy: RetryPolicy,
        worker: Worker,
        claims: Claims,
        selection: Selection,
        document_done: Callable[[], None],
    ) -> None:
        self._state = state
        self._artifacts = artifacts
        self._extraction = extraction
        self._builds = builds
        self._policy = policy
        self._worker = worker
        self._claims = claims
        self._selection = selection
        self._document_done = document_done
        self._removal = RemovalStage(state, artifacts, journal, builds, policy, worker)
        self.is_held_back = False

    async def begin(self, batch: Batch) -> None:
        """Start what can go on by itself: reading and parsing."""
        await self._load_artifacts(batch)
        to_extract = [
            doc for doc in batch.docs if doc.presence is Presence.PRESENT and doc.document_id not in batch.artifacts
        ]
        if to_extract:
            batch.extraction = self._extraction.begin(to_extract, force=self._selection.force)

    async def _load_artifacts(self, batch: Batch) -> None:
        """The artifacts of documents that only need to be built; one whose artifact is lost is to be extracted."""
        extracted = [doc for doc in batch.docs if _is_extracted(doc)]
        found = await asyncio.to_thread(self._artifacts.get_many, [doc.artifact for doc in extracted])
        batch.artifacts = {doc.document_id: found[doc.artifact] for doc in extracted if doc.artifact in found}
        now = utc_now()
        lost = {
            doc.document_id: (transitions.artifact_lost(doc, now), doc)
            for doc in extracted
            if doc.document_id not in batch.artifacts
        }
        stored = dict(zip(lost, await self._publish(list(lost.values())), strict=True))
        taken_over = {key for key, doc in stored.items() if doc is None}
        batch.reports += [self._report(lost[key][1], Outcome.BUSY) for key in taken_over]
        await self._claims.let_go(taken_over)
        renewed = [stored.get(doc.document_id, doc) for doc in batch.docs]
        batch.docs = [doc for doc in renewed if doc is not None]

    async def finish(self, batch: Batch) -> list[DocumentReport]:
        """Take a begun batch through the rest; every document of it is published when this returns."""
        reports = batch.reports
        gone = [doc for doc in batch.docs if doc.presence is not Presence.PRESENT]
        if gone:
            reports += await self._removal.remove(gone)
            for _ in gone:
                self._document_done()
        if len(gone) < len(batch.docs):
            reports += await self._ingest([doc for doc in batch.docs if doc.presence is Presence.PRESENT], batch)
        return reports

    async def _ingest(self, docs: Sequence[DocStatus], batch: Batch) -> list[DocumentReport]:
        extractions = await self._extraction.finish(batch.extraction, self._publish_part) if batch.extraction else []
        kept, extractions = await self._kept_artifacts(extractions)
        by_id = {extraction.doc.document_id: extraction for extraction in extractions}
        published, reports = await self._publish_extractions(extractions)
        to_build = [doc for doc in docs if doc.document_id not in by_id] + published
        artifacts = batch.artifacts | kept
        artifacts |= {key: extraction.artifact for key, extraction in by_id.items() if extraction.artifact}
        return reports + await self._build(to_build, artifacts, by_id)

    async def _kept_artifacts(self, extractions: list[Extraction]) -> tuple[dict[str, Artifact], list[Extraction]]:
        """The artifacts stores need of unchanged documents; a document whose artifact is lost is extracted anew."""
        reused = [found.doc for found in extractions if found.unchanged and self._needs_build(found.doc)]
        kept = await asyncio.to_thread(self._artifacts.get_many, [doc.artifact for doc in reused])
        lost = [doc for doc in reused if doc.artifact not in kept]
        if lost:
            begun = self._extraction.begin(lost, force=True)
            again = {found.doc.document_id: found for found in await self._extraction.finish(begun, self._publish_part)}
            extractions = [again.get(found.doc.document_id, found) for found in extractions]
        return {doc.document_id: kept[doc.artifact] for doc in reused if doc.artifact in kept}, extractions

    async def _publish_extractions(
        self, extractions: Sequence[Extraction]
    ) -> tuple[list[DocStatus], list[DocumentReport]]:
        """Publish what extraction ended in; gives the documents that go on to be built, and reports of the others."""
        now = utc_now()
        stored = await self._publish([(self._paid(extraction, now), extraction.doc) for extraction in extractions])
        go_on, reports = [], []
        for extraction, doc in zip(extractions, stored, strict=True):
            if doc is None:
                reports.append(self._report(extraction.doc, Outcome.BUSY))
            elif extraction.reason is None:
                go_on.append(doc)
            else:
                self.is_held_back |= extraction.reason is Reason.SPEND_CEILING
                outcome = _OUTCOMES.get(doc.extraction.status, Outcome.FAILED)
                reports.append(self._report(doc, outcome, extraction))
                self._document_done()
        return go_on, reports

    async def _publish_part(self, extraction: Extraction) -> bool:
        """Publish what is extracted so far of a conversation; False: it is not ours any more."""
        [stored] = await self._publish([(self._paid(extraction, utc_now()), extraction.doc)])
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
        doc, artifact = extraction.doc, extraction.artifact
        if extraction.reason in _SKIPPING:
            return transitions.extraction_skipped(doc, extraction.reason, extraction.error, now)
        if extraction.reason is Reason.SPEND_CEILING:
            return transitions.held_back(doc, extraction.reason, extraction.error, now, now + HELD_BACK_FOR)
        if extraction.reason is not None:
            return transitions.extraction_failed(doc, extraction.reason, extraction.error, now, self._policy)
        if artifact is None:
            return transitions.extracted_as_before(doc, now, extraction.content_version)
        return transitions.extracted(
            doc,
            now,
            is_whole=extraction.is_whole,
            parts=artifact.parts,
            content_version=extraction.content_version,
            artifact=extraction.artifact_key,
            artifact_hash=artifact_hash(artifact),
            chunkset_hash=artifact.chunkset_hash,
            title=artifact.title,
            media_type=artifact.media_type,
            n_chunks=len(artifact.chunks),
            n_entries=len(artifact.entries),
            n_chars=extraction.n_chars,
            parser=artifact.parser,
            n_pages=extraction.n_pages,
            n_empty_pages=extraction.n_empty_pages,
            last_turn=extraction.last_turn,
            n_corrections=len(corrections_of(artifact)),
            warnings=warnings_of(artifact),
            building=self._selection.stores,
        )

    def _needs_build(self, doc: DocStatus) -> bool:
        return any(self._needs_write(doc, slug) for slug in self._selected(doc))

    def _needs_write(self, doc: DocStatus, slug: str) -> bool:
        return self._builds[slug].needs_write(doc, renew=self._selection.renew_stores)

    def _selected(self, doc: DocStatus) -> list[str]:
        return [slug for slug in self._selection.stores if slug in doc.due_in]

    async def _build(
        self, docs: Sequence[DocStatus], artifacts: Mapping[str, Artifact], extractions: Mapping[str, Extraction]
    ) -> list[DocumentReport]:
        links: dict[str, dict[str, DocumentStoreLink]] = {doc.document_id: {} for doc in docs}
        current = {doc.document_id: doc for doc in docs}
        touched: set[str] = set()
        undone: set[str] = set()
        taken: set[str] = set()
        for slug in self._selection.stores:
            stage = self._builds[slug]
            left = [doc for key, doc in current.items() if key not in undone | taken]
            due = [doc for doc in left if slug in doc.due_in]
            # By force a store is written that the records call current: it may have been lost or restored.
            anew = self._selection.force or self._selection.rewrite
            to_write = [doc for doc in due if anew or self._needs_write(doc, slug)]
            if to_write:
                await self._worker.ensure_alive()
            rewrite = self._selection.rewrite
            write = partial(stage.write, artifacts=artifacts, trust=Trust.NOTHING if rewrite else Trust.LINKED)
            write_again = partial(write, trust=Trust.NOTHING if rewrite else Trust.HELD)
            written = await touch_store(self._state, self._worker, to_write, write, write_again)
            touched.update(written.outcomes)
            current |= written.renewed
            taken |= written.taken
            now = utc_now()
            for doc in due:
                outcome = written.outcomes.get(doc.document_id)
                if outcome is not None and outcome.fenced:
                    undone.add(doc.document_id)
                elif outcome is not None:
                    links[doc.document_id][slug] = self._link(doc, slug, stage, outcome, now)
                elif (kept := self._kept(doc, slug, stage, now)) is not None:
                    links[doc.document_id][slug] = kept
        mine = [doc for key, doc in current.items() if key not in undone | taken]
        now = utc_now()
        stored = await self._publish(
            [(transitions.built(doc, links[doc.document_id], now, self._policy), doc) for doc in mine]
        )
        reports = [self._report(doc, Outcome.BUSY) for key, doc in current.items() if key in taken]
        reports += await self._give_back([doc for key, doc in current.items() if key in undone - taken])
        for doc, published in zip(mine, stored, strict=True):
            self._document_done()
            extraction = extractions.get(doc.document_id)
            if published is None:
                reports.append(self._report(doc, Outcome.BUSY))
            else:
                reports.append(self._done(published, links[doc.document_id], extraction, doc.document_id in touched))
        return reports

    async def _give_back(self, docs: Sequence[DocStatus]) -> list[DocumentReport]:
        """Release documents that are ours and undone; whoever has one by now, it is theirs."""
        now = utc_now()
        stored = await self._publish([(transitions.released(doc, now), doc) for doc in docs])
        return [
            self._report(doc, Outcome.BUSY) if published is None else self._report(published, Outcome.PENDING)
            for doc, published in zip(docs, stored, strict=True)
        ]

    def _link(self, doc: DocStatus, slug: str, stage: BuildStage, outcome: Built, now: datetime) -> DocumentStoreLink:
        if outcome.reason is not None:
            return link_states.mark_failed(doc, slug, outcome.reason, outcome.error, self._worker.run_id)
        return link_states.mark_ingested(doc, slug, stage.parts_of(doc), self._worker.run_id, now)

    def _kept(self, doc: DocStatus, slug: str, stage: BuildStage, now: datetime) -> DocumentStoreLink | None:
        """The link of a store that was not written; None: it is left alone, and not told of either."""
        link = doc.links[slug]
        at_configuration = not (link.on_request and self._extraction.is_outdated(doc))
        if link.parts == stage.parts_of(doc) and at_configuration:
            current = link_states.mark_ingested(doc, slug, link.parts, self._worker.run_id, now)
            return msgspec.structs.replace(current, last_push_at=link.last_push_at)
        if link.state is LinkState.INGESTED or self._selection.named:
            return msgspec.structs.replace(link, last_run_id=self._worker.run_id)
        return None

    def _done(
        self, doc: DocStatus, links: Mapping[str, DocumentStoreLink], extraction: Extraction | None, touched: bool
    ) -> DocumentReport:
        built = tuple(slug for slug, link in links.items() if link.state is not LinkState.FAILED)
        failed = tuple(slug for slug, link in links.items() if link.state is LinkState.FAILED)
        extracted = extraction is not None
        if failed:
            outcome = Outcome.FAILED
        elif not touched and (extraction is None or extraction.unchanged):
            outcome = Outcome.UNCHANGED
        else:
            outcome = Outcome.SUCCEEDED
        report = self._report(doc, outcome, extraction)
        return msgspec.structs.replace(report, extracted=extracted, built=built, failed=failed)

    async def _publish(self, changes: Sequence[Change]) -> list[DocStatus | None]:
        return await self._state.set_many(changes) if changes else []

    def _report(self, doc: DocStatus, outcome: Outcome, extraction: Extraction | None = None) -> DocumentReport:
        report = report_of(doc, outcome, self._worker.run_id)
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


def _is_extracted(doc: DocStatus) -> bool:
    """Whether a claimed document only needs to be built."""
    return doc.presence is Presence.PRESENT and doc.extraction.status is Status.COMPLETED
