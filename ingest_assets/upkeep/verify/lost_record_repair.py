"""Makes damaged and lost records again, and takes out of the stores what no source has."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from ingest_assets.upkeep.verify.difference import Difference
from ingest_assets.upkeep.verify.examining import PAGE, Examined, Examiner, lost_records
from ingest_assets.upkeep.verify.mended import Mended
from ingest_assets.upkeep.verify.rebuilding import Rebuilder
from ingest_assets.upkeep.verify.taking_out import TakingOut
from resources.document_source.document_source import DocumentSource, SourceObject
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.label import read_label
from resources.document_state.model import LISTED, Presence
from resources.document_state.stored_record import StoredRecord
from resources.document_state.workers import Worker


class LostRecordRepair:
    """Mends documents without a record that can be trusted, each by one conditional write: it may die anywhere."""

    def __init__(
        self, state: DocumentStateStore, examiner: Examiner, rebuilder: Rebuilder, taking_out: TakingOut, worker: Worker
    ) -> None:
        self._state = state
        self._examiner = examiner
        self._rebuilder = rebuilder
        self._taking_out = taking_out
        self._worker = worker

    async def mend(self, found: Sequence[Difference], now: datetime, result: Mended) -> None:
        """Make records again, and take documents out that are in no source."""
        lost = lost_records(found)
        if not lost:
            return
        places = await self._rebuilder.find_in_sources(lost)
        for error in places.errors:
            result.problems[""] = error
        for start in range(0, len(lost), PAGE):
            page = await self._examiner.read(lost[start : start + PAGE])
            ids = [key for key in lost[start : start + PAGE] if not self._is_unwanted(page, key, result)]
            await self._make_again(
                page, {key: places.objects[key] for key in ids if key in places.objects}, now, result
            )
            gone = [key for key in ids if key not in places.objects]
            await self._take_out(page, gone, result, may_conclude=not places.errors)

    async def _make_again(
        self, page: Examined, objects: Mapping[str, tuple[DocumentSource, SourceObject]], now: datetime, result: Mended
    ) -> None:
        await self._worker.hold(list(objects))
        made, problems = await self._rebuilder.records(objects, page.contents, now)
        await self._worker.ensure_alive()
        result.problems |= problems
        changes = [(page.records.get(key) or StoredRecord(key, None, None), doc) for key, doc in made.items()]
        for (seen, _), written in zip(changes, await self._state.replace_faulty(changes), strict=True):
            if written:
                result.document_ids.append(seen.document_id)
        await self._worker.hold(())

    async def _take_out(
        self, page: Examined, document_ids: Collection[str], result: Mended, *, may_conclude: bool
    ) -> None:
        """Documents no source has: out of the stores, then the record goes; unless their source is not asked."""
        for key in document_ids:
            if not may_conclude:
                result.problems[key] = "Not every source could be listed, so it may still be in one."
                continue
            if (why := self._keeps(page, key)) is not None:
                result.problems[key] = why
                continue
            await self._taking_out.take_out(page, key)
            if key in page.records:
                await self._state.replace_faulty([(page.records[key], None)])

    def _is_unwanted(self, page: Examined, document_id: str, result: Mended) -> bool:
        """Whether a person may have had the document removed: no listing brings it back, and neither do we."""
        stored = page.records.get(document_id)
        if stored is None:
            return False
        try:
            presence = read_label(stored.label).presence
        except (msgspec.MsgspecError, TypeError):
            result.problems[document_id] = "Neither its record nor its label says what it was."
            return True
        if presence in LISTED or presence is Presence.DELETED:
            return False
        result.problems[document_id] = f"It was {presence}, and its record is not made again by itself."
        return True

    def _keeps(self, page: Examined, document_id: str) -> str | None:
        """Why a document is left although no source has it."""
        held_from = {found[document_id].source for found in page.contents.values() if document_id in found} - {""}
        stored = page.records.get(document_id)
        if stored is not None:
            label = read_label(stored.label)
            if label.presence is Presence.MISSING:
                return "Its source lacks it, which is waited for; its record cannot be made again meanwhile."
            held_from.add(label.source)
        unknown = sorted(held_from - self._rebuilder.source_names)
        return f"Its source '{unknown[0]}' is not configured." if unknown else None
