"""The engine: claims documents in groups, takes each group through its stages, publishes, reports.

The order of writes is what makes a crash harmless: the worker's record names the documents before they are claimed,
artifacts are durable before a record points to them, a store is written before a link says so, and events are sent
after the records they speak of. Wherever the process dies, `sensors/interrupted_runs` finds all of it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from ingest_assets.building import BuildStage, Built
from ingest_assets.extraction import BegunExtraction, Extraction, ExtractionStage, artifact_hash
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_store import ArtifactStore
from resources.document_source.document_ids import shown_key
from resources.document_state import transitions
from resources.document_state.document_state_store import Change, DocumentStateStore, utc_now
from resources.document_state.ingest_jobs import DocumentResult, Outcome
from resources.document_state.model import DocStatus, DocumentStoreLink, LinkState, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Action, action_for
from resources.document_state.transitions import RetryPolicy
from resources.document_state.workers import Worker

# A person cannot act on these in the document itself: the type is simply not read.
_SKIPPING = frozenset({Reason.UNSUPPORTED_TYPE})


# Documents of a group are in memory together, several times over as text, chunks and vectors.
_GROUP_BYTES = 16 * 1024 * 1024


class DocumentReport(msgspec.Struct, frozen=True):
    """What a run made of one document: the record as published, for Dagster, and the result, for the job.

    Attributes:
        doc: the record now; None if nobody knows the document.
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

    def document_done(self) -> None:
        """One more document has been worked on."""

    async def group_done(self, reports: Sequence[DocumentReport]) -> None:
        """A group is published. What must be told elsewhere has been told when this returns."""


class Selection(msgspec.Struct, frozen=True):
    """What of the documents a run may do.

    Attributes:
        stores: the stores it builds; the others stay as they are.
        force: extract although nothing changed.
        named: somebody asked for just these documents: what is complete is reported again.
        wants: whether a document that is free is still to be worked on.
    """

    stores: tuple[str, ...]
    force: bool = False
    named: bool = False
    wants: Callable[[DocStatus], bool] = lambda _: True


class _Batch:
    """A group of claimed documents on its way, reports of those that need none, and ids left for the next group."""

    def __init__(self) -> None:
        self.docs: list[DocStatus] = []
        self.left: list[str] = []
        self.reports: list[DocumentReport] = []
        self.artifacts: dict[str, Artifact] = {}
        self.extraction: BegunExtraction | None = None


class IngestRun:
    """One batch after the other through the stages, as one worker."""

    def __init__(
        self,
        state: DocumentStateStore,
        artifacts: ArtifactStore,
        extraction: ExtractionStage,
        builds: Mapping[str, BuildStage],
        policy: RetryPolicy,
        worker: Worker,
        selection: Selection,
        reporter: Reporter,
        group: int,
    ) -> None:
        """Put the parts together; `group` is how many documents are written together, and half of what is held."""
        self._state = state
        self._artifacts = artifacts
        self._extraction = extraction
        self._builds = builds
        self._policy = policy
        self._worker = worker
        self._selection = selection
        self._reporter = reporter
        self._group = group
        self._held: list[str] = []

    async def pull(self, limit: int) -> None:
        """Claim due documents and do them, until `limit` are claimed or nothing is due."""
        await self._work(self._due(limit))

    async def work_on(self, document_ids: Sequence[str]) -> None:
        """Do these documents, group by group."""
        await self._work(self._listed(document_ids))

    async def _due(self, limit: int) -> AsyncIterator[_Batch]:
        claimed = 0
        while claimed < limit:
            wanted = min(self._group, limit - claimed)
            # Other workers read the same list: looking further down finds what they have not claimed.
            due = await self._state.list_due(utc_now(), wanted * 4)
            if not due:
                return
            batch = await self._claim(due, wanted)
            claimed += len(batch.docs) + len(batch.reports)
            yield batch

    async def _listed(self, document_ids: Sequence[str]) -> AsyncIterator[_Batch]:
        remaining = list(dict.fromkeys(document_ids))
        while remaining:
            batch = await self._claim(remaining[: self._group], self._group)
            remaining = batch.left + remaining[self._group :]
            yield batch

    async def _work(self, batches: AsyncIterator[_Batch]) -> None:
        """Take batches through their stages. While one is written and reported, the next is already being parsed."""
        begun: _Batch | None = None
        try:
            async for batch in batches:
                await self._begin(batch)
                if begun is not None:
                    await self._finish(begun)
                begun = batch
            if begun is not None:
                await self._finish(begun)
        except BaseException:
            await self._release()
            raise

    async def _begin(self, batch: _Batch) -> None:
        await self._load_artifacts(batch)
        to_extract = [
            doc for doc in batch.docs if doc.presence is Presence.PRESENT and doc.document_id not in batch.artifacts
        ]
        if to_extract:
            batch.extraction = self._extraction.begin(to_extract, force=self._selection.force)

    async def _load_artifacts(self, batch: _Batch) -> None:
        """The artifacts of documents that only need to be built; one whose artifact is lost is to be extracted."""
        extracted = [doc for doc in batch.docs if _is_extracted(doc)]
        found = self._artifacts.get_many([doc.artifact for doc in extracted])
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
        await self._let_go(taken_over)
        renewed = [stored.get(doc.document_id, doc) for doc in batch.docs]
        batch.docs = [doc for doc in renewed if doc is not None]

    async def _finish(self, batch: _Batch) -> None:
        reports = batch.reports
        gone = [doc for doc in batch.docs if doc.presence is not Presence.PRESENT]
        if gone:
            reports += await self._remove(gone)
        if len(gone) < len(batch.docs):
            reports += await self._ingest([doc for doc in batch.docs if doc.presence is Presence.PRESENT], batch)
        await self._reporter.group_done(reports)
        await self._let_go({doc.document_id for doc in batch.docs})

    async def _let_go(self, document_ids: set[str]) -> None:
        """Nothing of these is held or owed any more."""
        if document_ids:
            self._held = [key for key in self._held if key not in document_ids]
            await self._worker.hold(self._held)

    async def _claim(self, document_ids: Sequence[str], limit: int) -> _Batch:
        """Claim up to `limit` of these documents; report those that need nothing or are not to be had."""
        known = await self._state.get_many(document_ids)
        batch = _Batch()
        wanted: list[DocStatus] = []
        n_bytes = 0
        for document_id in document_ids:
            doc = known.get(document_id)
            if doc is None:
                batch.reports.append(self._unknown(document_id))
            elif doc.claim is not None or not self._selection.wants(doc):
                batch.reports.append(self._report(doc, Outcome.BUSY))
            elif self._is_complete(doc):
                batch.reports.append(self._unchanged(doc))
            elif len(wanted) < limit and (not wanted or n_bytes + doc.size <= _GROUP_BYTES):
                wanted.append(doc)
                n_bytes += doc.size
            else:
                batch.left.append(document_id)
        if wanted:
            self._held += [doc.document_id for doc in wanted]
            await self._worker.hold(self._held)
            now = utc_now()
            claimed = await self._state.set_many([(self._claimed(doc, now), doc) for doc in wanted])
            batch.docs = [doc for doc in claimed if doc is not None]
            lost = [doc for doc, won in zip(wanted, claimed, strict=True) if won is None]
            batch.reports += [self._report(doc, Outcome.BUSY) for doc in lost]
            await self._let_go({doc.document_id for doc in lost})
        return batch

    def _claimed(self, doc: DocStatus, now: datetime) -> DocStatus:
        extract = action_for(doc, force=self._selection.force) is Action.EXTRACT
        claimed = transitions.claimed(doc, self._worker.worker_id, self._worker.run_id, now, extract=extract)
        # A store that is no longer configured cannot be built: the document is not due there any more.
        return msgspec.structs.replace(claimed, due_in=tuple(slug for slug in doc.due_in if slug in self._builds))

    def _is_complete(self, doc: DocStatus) -> bool:
        """Whether nothing of what this run may do is left to do."""
        action = action_for(doc, force=self._selection.force)
        if action is Action.BUILD and set(self._selection.stores) != set(self._builds):
            return not any(self._builds[slug].needs_write(doc) for slug in self._selected(doc))
        return action is None

    async def _ingest(self, docs: Sequence[DocStatus], batch: _Batch) -> list[DocumentReport]:
        extractions = await self._extraction.finish(batch.extraction) if batch.extraction else []
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
        kept = self._artifacts.get_many([doc.artifact for doc in reused])
        lost = [doc for doc in reused if doc.artifact not in kept]
        if lost:
            begun = self._extraction.begin(lost, force=True)
            again = {found.doc.document_id: found for found in await self._extraction.finish(begun)}
            extractions = [again.get(found.doc.document_id, found) for found in extractions]
        return {doc.document_id: kept[doc.artifact] for doc in reused if doc.artifact in kept}, extractions

    async def _publish_extractions(
        self, extractions: Sequence[Extraction]
    ) -> tuple[list[DocStatus], list[DocumentReport]]:
        """Publish what extraction ended in; gives the documents that go on to be built, and reports of the others."""
        now = utc_now()
        stored = await self._publish([(self._extracted(extraction, now), extraction.doc) for extraction in extractions])
        go_on, reports = [], []
        for extraction, doc in zip(extractions, stored, strict=True):
            if doc is None:
                reports.append(self._report(extraction.doc, Outcome.BUSY))
            elif extraction.reason is None:
                go_on.append(doc)
            else:
                skipped = doc.extraction.status is Status.SKIPPED
                reports.append(
                    self._report(doc, Outcome.SKIPPED if skipped else Outcome.FAILED, seconds=extraction.seconds)
                )
                self._reporter.document_done()
        return go_on, reports

    def _extracted(self, extraction: Extraction, now: datetime) -> DocStatus:
        doc, artifact = extraction.doc, extraction.artifact
        if extraction.reason in _SKIPPING:
            return transitions.extraction_skipped(doc, extraction.reason, extraction.error, now)
        if extraction.reason is not None:
            return transitions.extraction_failed(doc, extraction.reason, extraction.error, now, self._policy)
        if artifact is None:
            return transitions.extracted_as_before(doc, now, extraction.content_version)
        return transitions.extracted(
            doc,
            now,
            parts=extraction.parts,
            content_version=extraction.content_version,
            artifact=extraction.artifact_key,
            artifact_hash=artifact_hash(artifact),
            chunkset_hash=artifact.chunkset_hash,
            title=artifact.title,
            media_type=artifact.media_type,
            n_chunks=len(artifact.chunks),
            n_entries=len(artifact.entries),
            warnings=artifact.warnings,
        )

    def _needs_build(self, doc: DocStatus) -> bool:
        return any(self._builds[slug].needs_write(doc) for slug in self._selected(doc))

    def _selected(self, doc: DocStatus) -> list[str]:
        return [slug for slug in self._selection.stores if slug in doc.due_in]

    async def _build(
        self, docs: Sequence[DocStatus], artifacts: Mapping[str, Artifact], extractions: Mapping[str, Extraction]
    ) -> list[DocumentReport]:
        links: dict[str, dict[str, DocumentStoreLink]] = {doc.document_id: {} for doc in docs}
        touched: set[str] = set()
        fenced: set[str] = set()
        for slug in self._selection.stores:
            stage = self._builds[slug]
            due = [doc for doc in docs if slug in doc.due_in and doc.document_id not in fenced]
            to_write = [doc for doc in due if stage.needs_write(doc)]
            if to_write:
                await self._worker.ensure_alive()
            outcomes = stage.write(to_write, artifacts)
            touched.update(outcomes)
            now = utc_now()
            for doc in due:
                outcome = outcomes.get(doc.document_id, Built())
                if outcome.fenced:
                    fenced.add(doc.document_id)
                else:
                    links[doc.document_id][slug] = self._link(doc, slug, stage, outcome, now)
        mine = [doc for doc in docs if doc.document_id not in fenced]
        now = utc_now()
        stored = await self._publish(
            [(transitions.built(doc, links[doc.document_id], now, self._policy), doc) for doc in mine]
        )
        reports = [self._report(doc, Outcome.BUSY) for doc in docs if doc.document_id in fenced]
        # Usually somebody else has it by now, and this is refused. If the store is ahead of a state that was lost or
        # restored, the next claims catch up: each has a larger token.
        await self._publish([(transitions.released(doc, now), doc) for doc in docs if doc.document_id in fenced])
        for doc, published in zip(mine, stored, strict=True):
            self._reporter.document_done()
            extraction = extractions.get(doc.document_id)
            if published is None:
                reports.append(self._report(doc, Outcome.BUSY))
            else:
                reports.append(self._done(published, links[doc.document_id], extraction, doc.document_id in touched))
        return reports

    def _link(self, doc: DocStatus, slug: str, stage: BuildStage, outcome: Built, now: datetime) -> DocumentStoreLink:
        if outcome.reason is not None:
            return transitions.mark_failed(doc, slug, outcome.reason, outcome.error, self._worker.run_id)
        return transitions.mark_ingested(doc, slug, stage.parts_of(doc), self._worker.run_id, now)

    def _done(
        self, doc: DocStatus, links: Mapping[str, DocumentStoreLink], extraction: Extraction | None, touched: bool
    ) -> DocumentReport:
        built = tuple(slug for slug, link in links.items() if link.state is LinkState.INGESTED)
        failed = tuple(slug for slug, link in links.items() if link.state is LinkState.FAILED)
        extracted = extraction is not None
        if failed:
            outcome = Outcome.FAILED
        elif not touched and (extraction is None or extraction.unchanged):
            outcome = Outcome.UNCHANGED
        else:
            outcome = Outcome.SUCCEEDED
        report = self._report(doc, outcome, seconds=extraction.seconds if extraction else 0.0)
        return msgspec.structs.replace(report, extracted=extracted, built=built, failed=failed)

    async def _remove(self, docs: Sequence[DocStatus]) -> list[DocumentReport]:
        """Take vanished documents out of every store that has them."""
        await self._worker.ensure_alive()
        failed: dict[str, Built] = {}
        for slug, stage in self._builds.items():
            outcomes = stage.remove([doc for doc in docs if slug in doc.links])
            failed |= {key: built for key, built in outcomes.items() if built.reason is not None or built.fenced}
        now = utc_now()
        stored = await self._publish([(self._removed(doc, failed.get(doc.document_id), now), doc) for doc in docs])
        reports = []
        for doc, published in zip(docs, stored, strict=True):
            self._reporter.document_done()
            built = failed.get(doc.document_id)
            if built is not None and built.reason is not None:
                report = self._report(doc, Outcome.FAILED)
                result = msgspec.structs.replace(report.result, reason=built.reason, error=built.error)
                reports.append(msgspec.structs.replace(report, result=result))
            else:
                gone = published is not None and built is None
                reports.append(self._report(published or doc, Outcome.REMOVED if gone else Outcome.BUSY))
        return reports

    def _removed(self, doc: DocStatus, failed: Built | None, now: datetime) -> DocStatus:
        if failed is None:
            return transitions.removed(doc, now)
        if failed.reason is None:
            return transitions.released(doc, now)
        return transitions.removal_failed(doc, now, self._policy)

    async def _publish(self, changes: Sequence[Change]) -> list[DocStatus | None]:
        return await self._state.set_many(changes) if changes else []

    async def _release(self) -> None:
        """Give back what is still ours, so that another run can take it at once."""
        docs = (await self._state.get_many(self._held)).values()
        now = utc_now()
        ours = [doc for doc in docs if doc.claim is not None and doc.claim.worker_id == self._worker.worker_id]
        await self._publish([(transitions.released(doc, now), doc) for doc in ours])

    def _unknown(self, document_id: str) -> DocumentReport:
        reason = Reason.UNKNOWN_DOCUMENT
        result = DocumentResult(
            document_id, "", document_id, Outcome.FAILED, self._worker.run_id, reason, reason.what_to_do
        )
        return DocumentReport(None, result)

    def _unchanged(self, doc: DocStatus) -> DocumentReport:
        report = self._report(doc, Outcome.UNCHANGED)
        if not self._selection.named:
            return report
        built = tuple(slug for slug in self._selected(doc) if not self._builds[slug].needs_write(doc))
        return msgspec.structs.replace(report, extracted=doc.extraction.status is Status.COMPLETED, built=built)

    def _report(self, doc: DocStatus, outcome: Outcome, seconds: float = 0.0) -> DocumentReport:
        failing = doc.extraction if doc.extraction.reason is not None else doc.build
        told = outcome in (Outcome.FAILED, Outcome.SKIPPED)
        result = DocumentResult(
            doc.document_id,
            doc.source_uri,
            shown_key(doc.source_uri),
            outcome,
            self._worker.run_id,
            failing.reason if told else None,
            failing.error if told else "",
            doc.n_chunks,
            doc.n_entries,
            round(seconds, 3),
        )
        return DocumentReport(doc, result)


def _is_extracted(doc: DocStatus) -> bool:
    """Whether a claimed document only needs to be built."""
    return doc.presence is Presence.PRESENT and doc.extraction.status is Status.COMPLETED
