"""Mends records and takes out what nobody wants: each by one conditional write, so that it may die anywhere."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from ingest_assets.upkeep.verify.comparing import artifact_fields, held_of, needs_artifact, says_it_is_held
from ingest_assets.upkeep.verify.difference import Difference, What
from ingest_assets.upkeep.verify.examining import Examined, Examiner, ids_of, lost_records
from ingest_assets.upkeep.verify.rebuilding import Rebuilder, find_in_sources
from resources.document_source.document_source import DocumentSource, SourceObject
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.label import read_label
from resources.document_state.mending import in_line
from resources.document_state.model import GONE, LISTED, DocStatus, Presence
from resources.document_state.stored_record import StoredRecord
from resources.document_state.workers import Worker
from resources.store.store import Removal, Store

_PAGE = 200
# What a record that is brought in line with its artifact and stores is freed of.
_OF_RECORDS = frozenset({What.RECORD_DIFFERS, What.LINK_DIFFERS, What.NOT_WANTED})


class Mended(msgspec.Struct):
    """What was done to records.

    Attributes:
        document_ids: documents whose record was written.
        problems: why a document could not be mended, by id; "" for what concerns several.
    """

    document_ids: list[str] = msgspec.field(default_factory=list)
    problems: dict[str, str] = msgspec.field(default_factory=dict)


class RecordRepair:
    """Mends the records of documents that differ."""

    def __init__(
        self,
        state: DocumentStateStore,
        examiner: Examiner,
        rebuilder: Rebuilder,
        sources: Mapping[str, DocumentSource],
        stores: Mapping[str, Store],
        link_parts: Mapping[str, Mapping[str, str]],
        worker: Worker,
    ) -> None:
        self._state = state
        self._examiner = examiner
        self._rebuilder = rebuilder
        self._sources = sources
        self._stores = stores
        self._link_parts = link_parts
        self._worker = worker

    async def mend(self, found: Sequence[Difference], now: datetime) -> Mended:
        """Make damaged and lost records again, bring the others in line, and take out of stores what has no record."""
        result = Mended()
        lost = lost_records(found)
        if lost:
            places = await asyncio.to_thread(find_in_sources, list(self._sources.values()), lost)
            for error in places.errors:
                result.problems[""] = error
            for start in range(0, len(lost), _PAGE):
                page = await self._examiner.read(lost[start : start + _PAGE])
                ids = [key for key in lost[start : start + _PAGE] if not self._is_unwanted(page, key, result)]
                await self._make_again(
                    page, {key: places.objects[key] for key in ids if key in places.objects}, now, result
                )
                gone = [key for key in ids if key not in places.objects]
                await self._take_out(page, gone, result, may_conclude=not places.errors)
        others = ids_of([difference for difference in found if difference.what in _OF_RECORDS])
        for start in range(0, len(others), _PAGE):
            await self._bring_in_line(await self._examiner.read(others[start : start + _PAGE]), now, result)
        return result

    async def owed(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Of documents whose records were written: by store, which it does not hold rightly and owes."""
        owed: dict[str, list[str]] = {}
        for start in range(0, len(document_ids), _PAGE):
            page = await self._examiner.read(document_ids[start : start + _PAGE])
            for key, stored in page.records.items():
                doc, artifact = stored.doc, page.artifact_of(key)
                if doc is None or artifact is None or not needs_artifact(doc):
                    continue
                for slug, content in page.contents_of(key).items():
                    link = doc.links.get(slug)
                    is_owed = slug in doc.due_in and (link is None or not says_it_is_held(link))
                    if is_owed and not held_of(doc, artifact, content).is_right:
                        owed.setdefault(slug, []).append(key)
        return owed

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
            for slug, contents in page.contents.items():
                if (content := contents.get(key)) is not None:
                    await self._remove(slug, key, page.records.get(key), content.fencing_token)
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
        unknown = sorted(held_from - self._sources.keys())
        return f"Its source '{unknown[0]}' is not configured." if unknown else None

    async def _bring_in_line(self, page: Examined, now: datetime, result: Mended) -> None:
        changes: list[tuple[StoredRecord, DocStatus | None]] = []
        for stored in page.records.values():
            doc = stored.doc
            if doc is None or doc.claim is not None:
                continue
            if doc.presence in GONE:
                await self._remove_unwanted(page, doc)
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

    async def _remove_unwanted(self, page: Examined, doc: DocStatus) -> None:
        for slug, contents in page.contents.items():
            if (content := contents.get(doc.document_id)) is not None:
                token = max(doc.token, content.fencing_token)
                await self._remove(slug, doc.document_id, page.records[doc.document_id], token)

    async def _remove(self, slug: str, document_id: str, seen: StoredRecord | None, token: int) -> None:
        """Take a document out of a store, also of one that remembers a larger token than the rows it has."""
        store = self._stores[slug]
        [result] = await asyncio.to_thread(store.remove, [Removal(document_id, token)])
        if not result.fenced:
            return
        # Whoever was given the larger token since we looked has written the record before the store.
        now = (await self._state.examine_many([document_id])).get(document_id)
        if (now and now.stamp) == (seen and seen.stamp):
            await asyncio.to_thread(store.remove, [Removal(document_id, result.held_token)])
