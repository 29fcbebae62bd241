"""Claims: which documents a run takes, what it holds, and how it gives them back.

The worker's record names documents before they are claimed, so wherever the process dies, the sweep finds them.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ingest_assets.engine.document_report import DocumentReport, report_damaged, report_unknown
from ingest_assets.engine.extraction_stage import BegunExtraction
from ingest_assets.engine.run_context import RunContext
from resources.artifact_store.artifact import Artifact
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import DocStatus, Presence, Status
from resources.document_state.take_up import Action, action_for

# Documents of a group are in memory together, several times over as text, chunks and vectors.
_GROUP_BYTES = 16 * 1024 * 1024


class Batch:
    """A group of claimed documents on its way.

    Attributes:
        docs: their records, as claimed.
        left: ids that were not looked at, for the next group.
        reports: of documents nothing is left to do for.
        artifacts: of documents that only need to be built, by id.
        extraction: of the others, once it is begun.
    """

    def __init__(self) -> None:
        self.docs: list[DocStatus] = []
        self.left: list[str] = []
        self.reports: list[DocumentReport] = []
        self.artifacts: dict[str, Artifact] = {}
        self.extraction: BegunExtraction | None = None

    @property
    def present(self) -> list[DocStatus]:
        """The documents their sources have: to be extracted and built."""
        return [doc for doc in self.docs if doc.presence is Presence.PRESENT]

    @property
    def gone(self) -> list[DocStatus]:
        """The others: to be removed."""
        return [doc for doc in self.docs if doc.presence is not Presence.PRESENT]


class Claims:
    """The documents one worker holds: claimed, or published and not yet told of."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._worker = run.worker
        self._selection = run.selection
        self._held: list[str] = []

    async def claim(self, document_ids: Sequence[str], limit: int) -> Batch:
        """Claim up to `limit` of these documents; report those that need nothing or are not to be had."""
        known = await self._run.state.get_many(document_ids)
        batch = Batch()
        wanted: list[DocStatus] = []
        n_bytes = 0
        for document_id in document_ids:
            doc = known.get(document_id)
            if doc is None:
                report = report_damaged if document_id in self._run.state.damaged else report_unknown
                batch.reports.append(report(document_id, self._worker.run_id))
            elif doc.claim is None and self._is_complete(doc):
                batch.reports.append(self._unchanged(doc))
            elif doc.claim is not None or not self._selection.wants(doc):
                batch.reports.append(self._run.report(doc, Outcome.BUSY))
            elif len(wanted) < limit and (not wanted or n_bytes + doc.size <= _GROUP_BYTES):
                wanted.append(doc)
                n_bytes += doc.size
            else:
                batch.left.append(document_id)
        if wanted:
            self._held += [doc.document_id for doc in wanted]
            await self._worker.hold(self._held)
            now = utc_now()
            claimed = await self._run.state.set_many([(self._claimed(doc, now), doc) for doc in wanted])
            batch.docs = [doc for doc in claimed if doc is not None]
            lost = [doc for doc, won in zip(wanted, claimed, strict=True) if won is None]
            batch.reports += [self._run.report(doc, Outcome.BUSY) for doc in lost]
            await self.let_go({doc.document_id for doc in lost})
        return batch

    async def let_go(self, document_ids: set[str]) -> None:
        """Nothing of these is held or owed any more."""
        if document_ids:
            self._held = [key for key in self._held if key not in document_ids]
            await self._worker.hold(self._held)

    async def release(self) -> None:
        """Give back what is still ours, so that another run can take it at once."""
        docs = (await self._run.state.get_many(self._held)).values()
        now = utc_now()
        ours = [doc for doc in docs if doc.claim is not None and doc.claim.worker_id == self._worker.worker_id]
        if ours:
            await self._run.state.set_many([(transitions.released(doc, now), doc) for doc in ours])

    def _claimed(self, doc: DocStatus, now: datetime) -> DocStatus:
        extract = self._action(doc) is Action.EXTRACT
        anew = [slug for slug in self._selected(doc) if self._is_renewed(doc, slug)]
        claimed = transitions.claimed(
            doc, self._worker.worker_id, self._worker.run_id, now, extract=extract, renew=anew
        )
        # Written with the claim, so that a worker's death does not forget that all of a conversation was asked for.
        last_turn = None if extract and self._is_extracted_anew(doc) else doc.last_extracted_turn
        return msgspec.structs.replace(claimed, due_in=self._due_in(doc), last_extracted_turn=last_turn)

    def _due_in(self, doc: DocStatus) -> tuple[str, ...]:
        """The stores it belongs into: of the configured ones, also one that holds it, and those asked for by name."""
        selection = self._selection
        asked = selection.stores if (selection.named or selection.force) and not selection.only_due else ()
        return tuple(slug for slug in self._run.builds if slug in doc.due_in or slug in doc.links or slug in asked)

    def _is_complete(self, doc: DocStatus) -> bool:
        """Whether nothing of what this run may do is left to do."""
        if self._selection.rewrite and self._selected(doc):
            return False
        action = self._action(doc)
        partial = set(self._selection.stores) != set(self._run.builds)
        asked_for = self._selection.named and doc.presence is Presence.PRESENT
        if (action is None and asked_for) or (action is Action.BUILD and partial):
            return not any(self._run.needs_write(doc, slug) for slug in self._selected(doc))
        return action is None

    def _action(self, doc: DocStatus) -> Action | None:
        return action_for(doc, force=self._is_extracted_anew(doc))

    def _is_extracted_anew(self, doc: DocStatus) -> bool:
        """Whether somebody asked for its extraction although nothing of its content may have changed."""
        return self._selection.force or (self._selection.renew_extraction and self._run.extraction.is_outdated(doc))

    def _is_renewed(self, doc: DocStatus, slug: str) -> bool:
        """Whether a store gets the document anew under this claim only because somebody asked."""
        selection = self._selection
        if selection.renew_extraction and self._run.extraction.is_outdated(doc):
            return True
        return selection.renew_stores and self._run.needs_write(doc, slug)

    def _unchanged(self, doc: DocStatus) -> DocumentReport:
        report = self._run.report(doc, Outcome.UNCHANGED)
        if not self._selection.named:
            return report
        built = tuple(slug for slug in self._selected(doc) if not self._run.needs_write(doc, slug))
        return msgspec.structs.replace(report, extracted=doc.extraction.status is Status.COMPLETED, built=built)

    def _selected(self, doc: DocStatus) -> list[str]:
        return [slug for slug in self._selection.stores if slug in self._due_in(doc)]
