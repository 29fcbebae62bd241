"""The way out for a group of claimed documents: out of every store, proven by a read, then published.

Of what a person had deleted the artifacts go as well, and the answers that were paid for, between the stores and the
record: wherever the process dies, the record still says that the document is to be removed, and each step repeated
changes nothing.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ingest_assets.engine.build_stage import BuildStage, Built
from ingest_assets.engine.document_report import DocumentReport
from ingest_assets.engine.outrunning import touch_store
from ingest_assets.engine.run_context import RunContext
from resources.clock import utc_now
from resources.document_state import removals, transitions
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import DocStatus, Presence


class _Leaving(msgspec.Struct):
    """A document on its way out: its record, and by store what became of it there."""

    doc: DocStatus
    outcomes: dict[str, Built] = {}

    @property
    def gone_from(self) -> list[str]:
        """Stores that hold nothing of it any more."""
        return [slug for slug, built in self.outcomes.items() if built.reason is None and not built.fenced]

    @property
    def failures(self) -> dict[str, Built]:
        """Stores that could not be rid of it."""
        return {slug: built for slug, built in self.outcomes.items() if built.reason is not None}

    @property
    def is_out(self) -> bool:
        """Whether it is out of every store that is configured."""
        return len(self.gone_from) == len(self.outcomes)


class RemovalPhase:
    """Takes claimed documents out of their stores, and publishes it."""

    def __init__(self, run: RunContext) -> None:
        self._run = run

    async def remove(self, docs: Sequence[DocStatus]) -> list[DocumentReport]:
        """Take documents out of every store they may be in; a report each."""
        await self._run.worker.ensure_alive()
        leaving = {doc.document_id: _Leaving(doc) for doc in docs}
        taken: list[DocStatus] = []
        for slug, stage in self._run.builds.items():
            await self._remove_from(slug, stage, leaving, taken)
        await self._purge([one.doc for one in leaving.values() if one.is_out])
        now = utc_now()
        stored = await self._run.publish([(self._next(one, now), one.doc) for one in leaving.values()])
        reports = [self._run.report(doc, Outcome.BUSY) for doc in taken]
        return reports + [
            self._report_of(one, published) for one, published in zip(leaving.values(), stored, strict=True)
        ]

    async def _remove_from(
        self, slug: str, stage: BuildStage, leaving: dict[str, _Leaving], taken: list[DocStatus]
    ) -> None:
        # A worker that died between store and link left a document in a store it is due in and has no link to.
        held = [one.doc for one in leaving.values() if slug in one.doc.links or slug in one.doc.due_in]
        if not held:
            return
        touched = await touch_store(self._run.state, self._run.worker, held, stage.remove, stage.remove)
        for document_id, doc in touched.renewed.items():
            leaving[document_id].doc = doc
        for document_id, outcome in touched.outcomes.items():
            leaving[document_id].outcomes[slug] = outcome
        taken += [leaving.pop(document_id).doc for document_id in touched.taken]

    async def _purge(self, docs: Sequence[DocStatus]) -> None:
        """Remove all that was made of the documents that a person had deleted, except what another one uses as well."""
        deleted = [doc.document_id for doc in docs if doc.presence is Presence.DELETING]
        if deleted:
            await self._run.worker.ensure_alive()
            await asyncio.to_thread(self._run.artifacts.remove_documents, deleted)
            for document_id in deleted:
                await self._run.journal.forget(document_id)

    def _next(self, one: _Leaving, now: datetime) -> DocStatus:
        if one.is_out:
            return removals.removed(one.doc, one.gone_from, now)
        failures = {slug: (built.reason, built.error) for slug, built in one.failures.items() if built.reason}
        if not failures:
            return transitions.released(one.doc, now)
        return removals.removal_failed(one.doc, one.gone_from, failures, now, self._run.retry_policy)

    def _report_of(self, one: _Leaving, published: DocStatus | None) -> DocumentReport:
        if published is None:
            return self._run.report(one.doc, Outcome.BUSY)
        if one.is_out:
            return self._run.report(published, Outcome.REMOVED)
        if not one.failures:
            return self._run.report(published, Outcome.PENDING)
        failed = next(iter(one.failures.values()))
        report = self._run.report(published, Outcome.FAILED)
        result = msgspec.structs.replace(report.result, reason=failed.reason, error=failed.error)
        return msgspec.structs.replace(report, result=result)
