"""Brings records in line with what else is known: each by one conditional write, so that it may die anywhere."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from ingest_assets.upkeep.verify.comparing import artifact_fields, held_of, needs_artifact
from ingest_assets.upkeep.verify.difference import Difference, What
from ingest_assets.upkeep.verify.examining import PAGE, Examined, Examiner, ids_of
from ingest_assets.upkeep.verify.mended import Mended
from ingest_assets.upkeep.verify.taking_out import TakingOut
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.mending import in_line
from resources.document_state.model import GONE, DocStatus
from resources.document_state.stored_record import StoredRecord

# What a record that is brought in line with its artifact and stores is freed of.
_OF_RECORDS = frozenset({What.RECORD_DIFFERS, What.LINK_DIFFERS, What.NOT_WANTED})


class RecordRepair:
    """Mends records that differ from their artifact, their index entries or what stores hold."""

    def __init__(
        self,
        state: DocumentStateStore,
        examiner: Examiner,
        taking_out: TakingOut,
        link_parts: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Take what is needed; `link_parts`: the configured stores, each with its share of a link's fingerprint."""
        self._state = state
        self._examiner = examiner
        self._taking_out = taking_out
        self._link_parts = link_parts

    async def mend(self, found: Sequence[Difference], now: datetime, result: Mended) -> None:
        """Bring records in line, and take out of the stores what is gone."""
        ids = ids_of([difference for difference in found if difference.what in _OF_RECORDS])
        for start in range(0, len(ids), PAGE):
            await self._bring_in_line(await self._examiner.read(ids[start : start + PAGE]), now, result)

    async def _bring_in_line(self, page: Examined, now: datetime, result: Mended) -> None:
        changes: list[tuple[StoredRecord, DocStatus | None]] = []
        for stored in page.records.values():
            doc = stored.doc
            if doc is None or doc.claim is not None:
                continue
            if doc.presence in GONE:
                await self._taking_out.take_out(page, doc.document_id, doc.token)
                changes.append((stored, in_line(doc, now, {}, {})))
                continue
            changes.append((stored, self._in_line(doc, page, now)))
        for (seen, _), written in zip(changes, await self._state.replace_faulty(changes), strict=True):
            if written:
                result.document_ids.append(seen.document_id)

    def _in_line(self, doc: DocStatus, page: Examined, now: datetime) -> DocStatus:
        artifact = page.artifact_of(doc.document_id)
        if artifact is None or artifact.document_id != doc.document_id or not needs_artifact(doc):
            return in_line(doc, now, {}, {})
        contents = page.contents_of(doc.document_id)
        holding = {
            slug: self._link_parts[slug]
            for slug, content in contents.items()
            if held_of(doc, artifact, content).is_right
        }
        return in_line(doc, now, artifact_fields(artifact), holding)
