"""The second phase of a batch: its documents are written into the stores, and their records say so.

A store is written before a link says so.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from ingest_assets.engine.build_stage import BuildStage, Built, Trust
from ingest_assets.engine.document_report import DocumentReport, with_extraction
from ingest_assets.engine.extraction_outcome import Extraction
from ingest_assets.engine.extraction_phase import Extracted
from ingest_assets.engine.outrunning import Touched, touch_store
from ingest_assets.engine.run_context import RunContext
from resources.artifact_store.artifact import Artifact
from resources.clock import utc_now
from resources.document_state import links as link_states
from resources.document_state import transitions
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import DocStatus, DocumentStoreLink, LinkState


class _Entering(msgspec.Struct):
    """A document on its way into its stores.

    Attributes:
        doc: its record, under the token it has now.
        links: what its links become, by store; stores that are left alone are left out.
        is_written: a store was asked to hold it, whether it could or not.
        is_fenced: a store refuses it under any token this run has had; it is given back.
        is_taken: it is in another worker's hands; nothing of it may be published.
    """

    doc: DocStatus
    links: dict[str, DocumentStoreLink] = {}
    is_written: bool = False
    is_fenced: bool = False
    is_taken: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether it may be written into the next store, and published."""
        return not (self.is_fenced or self.is_taken)


class BuildPhase:
    """Builds documents into every store of the selection, store by store, and publishes their links."""

    def __init__(self, run: RunContext) -> None:
        self._run = run

    async def build(self, extracted: Extracted) -> list[DocumentReport]:
        """Build what extraction has published; a report for each document."""
        entering = [_Entering(doc) for doc in extracted.docs]
        for slug in self._run.selection.stores:
            due = [one for one in entering if one.goes_on and slug in one.doc.due_in]
            await self._build_in(slug, due, extracted.artifacts)
        published = await self._publish([one for one in entering if one.goes_on], extracted.extractions)
        busy = [self._run.report(one.doc, Outcome.BUSY) for one in entering if one.is_taken]
        given_back = await self._give_back([one.doc for one in entering if one.is_fenced and not one.is_taken])
        return busy + given_back + published

    async def _build_in(self, slug: str, due: Sequence[_Entering], artifacts: Mapping[str, Artifact]) -> None:
        """Write documents into one store where that is needed, and note their links."""
        stage = self._run.builds[slug]
        written = await self._write(stage, [one.doc for one in due if self._is_to_write(one.doc, slug)], artifacts)
        now = utc_now()
        for one in due:
            document_id = one.doc.document_id
            one.doc = written.renewed.get(document_id, one.doc)
            one.is_taken = document_id in written.taken
            outcome = written.outcomes.get(document_id)
            if outcome is None:
                if (link := self._unwritten_link(one.doc, slug, stage, now)) is not None:
                    one.links[slug] = link
                continue
            one.is_written = True
            if outcome.fenced:
                one.is_fenced = True
            else:
                one.links[slug] = self._written_link(one.doc, slug, stage, outcome, now)

    def _is_to_write(self, doc: DocStatus, slug: str) -> bool:
        # By force a store is written that the records call current: it may have been lost or restored.
        anew = self._run.selection.force or self._run.selection.rewrite
        return anew or self._run.needs_write(doc, slug)

    async def _write(self, stage: BuildStage, docs: Sequence[DocStatus], artifacts: Mapping[str, Artifact]) -> Touched:
        if not docs:
            return Touched({}, {}, set())
        await self._run.worker.ensure_alive()
        rewrite = self._run.selection.rewrite
        write = partial(stage.write, artifacts=artifacts, trust=Trust.NOTHING if rewrite else Trust.LINKED)
        write_again = partial(write, trust=Trust.NOTHING if rewrite else Trust.HELD)
        return await touch_store(self._run.state, self._run.worker, docs, write, write_again)

    def _written_link(
        self, doc: DocStatus, slug: str, stage: BuildStage, outcome: Built, now: datetime
    ) -> DocumentStoreLink:
        run_id = self._run.worker.run_id
        if outcome.reason is not None:
            return link_states.mark_failed(doc, slug, outcome.reason, outcome.error, run_id)
        return link_states.mark_ingested(doc, slug, stage.parts_of(doc), run_id, now)

    def _unwritten_link(self, doc: DocStatus, slug: str, stage: BuildStage, now: datetime) -> DocumentStoreLink | None:
        """The link of a store that had not to be written; None: it is left alone, and not told of either."""
        link, run_id = doc.links[slug], self._run.worker.run_id
        at_configuration = not (link.on_request and self._run.extraction.is_outdated(doc))
        if link.parts == stage.parts_of(doc) and at_configuration:
            current = link_states.mark_ingested(doc, slug, link.parts, run_id, now)
            return msgspec.structs.replace(current, last_push_at=link.last_push_at)
        if link.state is LinkState.INGESTED or self._run.selection.named:
            return msgspec.structs.replace(link, last_run_id=run_id)
        return None

    async def _publish(self, built: Sequence[_Entering], extractions: Mapping[str, Extraction]) -> list[DocumentReport]:
        """Publish the links of documents; a report for each."""
        now = utc_now()
        stored = await self._run.publish(
            [(transitions.built(one.doc, one.links, now, self._run.retry_policy), one.doc) for one in built]
        )
        reports = []
        for one, doc in zip(built, stored, strict=True):
            if doc is None:
                reports.append(self._run.report(one.doc, Outcome.BUSY))
            else:
                reports.append(self._report(doc, one, extractions.get(doc.document_id)))
        return reports

    async def _give_back(self, docs: Sequence[DocStatus]) -> list[DocumentReport]:
        """Release documents that are ours and undone; whoever has one by now, it is theirs."""
        now = utc_now()
        stored = await self._run.publish([(transitions.released(doc, now), doc) for doc in docs])
        return [
            self._run.report(doc, Outcome.BUSY) if published is None else self._run.report(published, Outcome.PENDING)
            for doc, published in zip(docs, stored, strict=True)
        ]

    def _report(self, doc: DocStatus, one: _Entering, extraction: Extraction | None) -> DocumentReport:
        failed = tuple(slug for slug, link in one.links.items() if link.state is LinkState.FAILED)
        built = tuple(slug for slug in one.links if slug not in failed)
        if failed:
            outcome = Outcome.FAILED
        elif not one.is_written and (extraction is None or extraction.unchanged):
            outcome = Outcome.UNCHANGED
        else:
            outcome = Outcome.SUCCEEDED
        report = with_extraction(self._run.report(doc, outcome), extraction)
        return msgspec.structs.replace(report, extracted=extraction is not None, built=built, failed=failed)
