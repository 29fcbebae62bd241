"""Routes that show documents."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field

from ingest_assets.api.choosing import Filter, counted, document_of, ids_behind
from ingest_assets.api.document_shapes import (
    ChunkPage,
    DocumentCounts,
    DocumentPage,
    DocumentShape,
    History,
    chunk_shape,
    document_shape,
    etag_of,
    history_shape,
)
from ingest_assets.api.problems import NotModified, Problem, unreadable
from ingest_assets.api.services import READS, Asking, Given
from resources.document_state.label import DocumentLabel, label_of, read_label

router = APIRouter(prefix="/api/documents", tags=["documents"], dependencies=[READS])
Cursor = Annotated[str, Query(max_length=200, description="`nextCursor` of the page before")]


class PageOfFilter(Filter):
    """Which documents, and which of their pages."""

    cursor: Annotated[str, Field(max_length=200, description="`nextCursor` of the page before")] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 50


@router.get("")
async def documents(services: Given, caller: Asking, chosen: Annotated[PageOfFilter, Query()]) -> DocumentPage:
    """A page of documents. Whatever is there from the first page to the last comes exactly once."""
    as_of = services.index.as_of()
    ids = await ids_behind(services, caller, chosen.passes, chosen.text, chosen.cursor, chosen.limit + 1)
    more, ids = len(ids) > chosen.limit, ids[: chosen.limit]
    docs = await services.components.state.get_many(ids)
    # The records are newer than the index that found them: one that does not fit any more is left out.
    found = [docs[key] for key in ids if key in docs and chosen.passes(read_label(label_of(docs[key])))]
    configured = await services.components.configured()
    shown = [document_shape(doc, configured, services.store_names) for doc in found]
    return DocumentPage(documents=shown, next_cursor=ids[-1] if more else None, as_of=as_of)


@router.get("/counts")
async def counts(services: Given, caller: Asking, chosen: Annotated[Filter, Query()]) -> DocumentCounts:
    """How many documents pass the filter, by status, reason, source, and state in each store."""
    as_of = services.index.as_of()
    return _counts(await counted(services, caller, chosen.passes, chosen.text), services.store_names, as_of)


@router.get("/{document_id}")
async def document(
    document_id: str,
    services: Given,
    caller: Asking,
    response: Response,
    if_none_match: Annotated[str, Header()] = "",
) -> DocumentShape:
    """The record of a document. With the ETag in If-None-Match: 304 as long as nothing changed."""
    doc = await document_of(services, caller, document_id)
    if etag_of(doc) in if_none_match.replace(" ", "").split(","):
        raise NotModified(etag_of(doc))
    response.headers["ETag"] = etag_of(doc)
    return document_shape(doc, await services.components.configured(), services.store_names)


@router.get("/{document_id}/history")
async def history(document_id: str, services: Given, caller: Asking) -> History:
    """Its last attempts and changes of state."""
    return history_shape(await document_of(services, caller, document_id))


@router.get("/{document_id}/chunks")
async def chunks(
    document_id: str,
    services: Given,
    caller: Asking,
    cursor: Cursor = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ChunkPage:
    """The chunks that extraction made last, in the order of the document; none before that."""
    doc = await document_of(services, caller, document_id)
    start = _start_of(cursor, doc.artifact_hash)
    if not doc.artifact:
        return ChunkPage(document_id=document_id, chunkset_hash="", total=0, chunks=[], next_cursor=None)
    artifact = (await asyncio.to_thread(services.components.artifacts.get_many, [doc.artifact])).get(doc.artifact)
    if artifact is None:
        raise unreadable(f"What was extracted of '{document_id}' is lost or damaged; it")
    shown = artifact.chunks[start : start + limit]
    wanted = {chunk.chunk_id for chunk in shown}
    entries = [entry for entry in artifact.entries if entry.chunk_id in wanted]
    end = start + len(shown)
    return ChunkPage(
        document_id=document_id,
        chunkset_hash=artifact.chunkset_hash,
        total=len(artifact.chunks),
        chunks=[chunk_shape(chunk, [e for e in entries if e.chunk_id == chunk.chunk_id]) for chunk in shown],
        next_cursor=f"{doc.artifact_hash}.{end}" if end < len(artifact.chunks) else None,
    )


def _start_of(cursor: str, artifact_hash: str) -> int:
    """Where a page of chunks begins."""
    if not cursor:
        return 0
    made_by, _, number = cursor.rpartition(".")
    if not number.isascii() or not number.isdigit():
        raise Problem(422, "wrong-cursor", "The cursor is none of ours.", "Use `nextCursor` of the page before.")
    if made_by != artifact_hash:
        raise Problem(
            409, "extracted-anew", "The document was extracted anew since the page before.", "Begin without a cursor."
        )
    return int(number)


def _counts(labels: Mapping[DocumentLabel, int], stores: Iterable[str], as_of: datetime | None) -> DocumentCounts:
    extraction, build, reasons, sources = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    by_store = {slug: Counter[str]() for slug in stores}
    for label, n in labels.items():
        extraction[label.extraction] += n
        build[label.build] += n
        sources[label.source] += n
        for reason in {label.extraction_reason, label.build_reason} - {None}:
            reasons[str(reason)] += n
        for slug, state, _ in label.links:
            by_store.setdefault(slug, Counter())[state] += n
    return DocumentCounts(
        total=sum(labels.values()),
        extraction=extraction,
        build=build,
        reasons=reasons,
        sources=sources,
        stores={slug: dict(found) for slug, found in by_store.items()},
        as_of=as_of,
    )
