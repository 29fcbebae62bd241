"""Documents as the API shows them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from ingest_assets.api.shapes import Shape
from ingest_assets.upkeep.staleness import Configured, Standing, standings
from resources.artifact_store.artifact import Chunk, Entry, Place
from resources.document_source.document_ids import shown_key
from resources.document_state.change import Change, Part
from resources.document_state.model import DocStatus, DocumentStoreLink, PhaseState


class PhaseShape(Shape):
    """Extraction or build of a document."""

    status: str
    changed_at: datetime
    reason: str | None = None
    error: str = ""
    what_to_do: str = ""
    attempts: int = 0
    next_attempt_at: datetime | None = None


class DifferenceShape(Shape):
    """One part of what something was made with: as it was, and as it would be now."""

    part: str
    old: str
    new: str


class DocumentStoreShape(Shape):
    """A document in one store. `state` is null where it was never built."""

    store_id: str
    store_name: str
    state: str | None = None
    verdict: str = Field("", description="how it stands against the configuration: current, stale, missing …")
    chunkset_hash: str = ""
    last_push_at: datetime | None = None
    last_run_id: str = ""
    reason: str | None = None
    error_message: str = ""
    stale_parts: tuple[DifferenceShape, ...] = ()
    why: str = ""
    what_to_do: str = ""


class DocumentShape(Shape):
    """A document's record. `version` is its ETag."""

    document_id: str
    version: str
    source: str
    name: str
    title: str
    lifecycle: str
    presence: str
    media_type: str
    size: int
    n_chunks: int
    n_entries: int
    n_chars: int
    last_extracted_turn: int | None = Field(description="how far a conversation is extracted; turns count from 0")
    warnings: list[str]
    created_at: datetime
    updated_at: datetime
    last_run_id: str
    in_progress: bool
    extraction: PhaseShape
    build: PhaseShape
    stores: list[DocumentStoreShape]


class DocumentPage(Shape):
    """Some documents by ascending id. `nextCursor` is null on the last page."""

    documents: list[DocumentShape]
    next_cursor: str | None
    as_of: datetime | None = Field(description="up to when changes are considered by the filter; null: up to now")


class DocumentCounts(Shape):
    """How many documents pass a filter, and how they divide."""

    total: int
    extraction: dict[str, int]
    build: dict[str, int]
    reasons: dict[str, int]
    sources: dict[str, int]
    stores: dict[str, dict[str, int]]
    as_of: datetime | None


class ChangeShape(Shape):
    """One thing that happened to a document. `state` is "" where a store does not hold it any more."""

    at: datetime
    part: str
    state: str
    store: str
    reason: str | None
    run_id: str


class History(Shape):
    """The newest changes of a document, the newest first."""

    document_id: str
    created_at: datetime
    changes: list[ChangeShape]


class PlaceShape(Shape):
    """Where in its document a chunk stands. Characters and turns count from 0; pages, slides and rows from 1."""

    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    last_page: int | None = None
    sheet: str | None = None
    row: int | None = None
    last_row: int | None = None
    turn: int | None = None


class EntryShape(Shape):
    """A piece of knowledge that was found in a chunk."""

    entry_id: str
    kind: str
    text: str


class CorrectionShape(Shape):
    """That a person gave a chunk another text."""

    by: str
    at: datetime
    note: str
    original_text: str


class ChunkShape(Shape):
    """One stretch of a document's text, and what was found in it."""

    chunk_id: str
    text: str
    place: PlaceShape
    entries: list[EntryShape]
    correction: CorrectionShape | None = None


class ChunkPage(Shape):
    """Some chunks in the order of the document, as they were extracted last."""

    document_id: str
    chunkset_hash: str
    total: int
    chunks: list[ChunkShape]
    next_cursor: str | None


def etag_of(doc: DocStatus) -> str:
    """A record's ETag: no two states of a record share one."""
    return f'"{doc.version}.{doc.write_id.partition(".")[0]}"'


def document_shape(doc: DocStatus, configured: Configured, names: Mapping[str, str]) -> DocumentShape:
    """A record against the stores there are, and those it is still in.

    Args:
        doc: the record.
        configured: what is stale against this.
        names: the names of all stores, by slug.
    """
    stands = {standing.store: standing for standing in standings(doc, configured, list(names))}
    return DocumentShape(
        document_id=doc.document_id,
        version=etag_of(doc),
        source=doc.source,
        name=shown_key(doc.source_uri),
        title=doc.title,
        lifecycle=doc.lifecycle,
        presence=doc.presence,
        media_type=doc.media_type,
        size=doc.size,
        n_chunks=doc.n_chunks,
        n_entries=doc.n_entries,
        n_chars=doc.n_chars,
        last_extracted_turn=doc.last_extracted_turn,
        warnings=list(doc.warnings),
        created_at=doc.created_at,
        updated_at=doc.updated_at,
        last_run_id=doc.last_run_id,
        in_progress=doc.claim is not None,
        extraction=_phase(doc.extraction),
        build=_phase(doc.build),
        stores=[
            _in_store(slug, names, doc.links.get(slug), stands.get(slug))
            for slug in dict.fromkeys([*names, *doc.links])
        ],
    )


def history_shape(doc: DocStatus) -> History:
    """What a record remembers."""
    return History(
        document_id=doc.document_id,
        created_at=doc.created_at,
        changes=[_change(change) for change in reversed(doc.history)],
    )


def chunk_shape(chunk: Chunk, entries: Iterable[Entry]) -> ChunkShape:
    """A chunk with its entries."""
    made = chunk.correction
    return ChunkShape(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        place=place_shape(chunk.place),
        entries=[EntryShape(entry_id=entry.entry_id, kind=entry.kind, text=entry.text) for entry in entries],
        correction=CorrectionShape(by=made.by, at=made.at, note=made.note, original_text=made.original_text)
        if made is not None
        else None,
    )


def place_shape(place: Place) -> PlaceShape:
    """A place."""
    return PlaceShape(
        start=place.start,
        end=place.end,
        headings=place.headings,
        page=place.page,
        last_page=place.last_page,
        sheet=place.sheet,
        row=place.row,
        last_row=place.last_row,
        turn=place.turn,
    )


def _phase(phase: PhaseState) -> PhaseShape:
    return PhaseShape(
        status=phase.status,
        changed_at=phase.changed_at,
        reason=phase.reason,
        error=phase.error,
        what_to_do=phase.reason.what_to_do if phase.reason else "",
        attempts=phase.attempts,
        next_attempt_at=phase.waits_until,
    )


def _in_store(
    slug: str, names: Mapping[str, str], link: DocumentStoreLink | None, standing: Standing | None
) -> DocumentStoreShape:
    fields: dict[str, Any] = {"store_id": slug, "store_name": names.get(slug, slug)}
    if link is not None:
        fields |= {
            "state": link.state,
            "chunkset_hash": link.chunkset_hash,
            "last_push_at": link.last_push_at,
            "last_run_id": link.last_run_id,
            "reason": link.reason,
            "error_message": link.error_message,
        }
    if standing is not None:
        fields |= {
            "verdict": standing.verdict,
            "stale_parts": tuple(DifferenceShape(part=d.part, old=d.old, new=d.new) for d in standing.differences),
            "why": standing.why,
            "what_to_do": standing.what_to_do,
        }
    return DocumentStoreShape(**fields)


def _change(change: Change) -> ChangeShape:
    return ChangeShape(
        at=change.at,
        part=change.part,
        state=change.state,
        store=change.store if change.part is Part.STORE else "",
        reason=change.reason,
        run_id=change.run_id,
    )
