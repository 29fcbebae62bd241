"""Routes that show stores, and search in them."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from ingest_assets.api.choosing import counted, document_of
from ingest_assets.api.document_shapes import PlaceShape, place_shape
from ingest_assets.api.services import READS, Asking, Given
from ingest_assets.api.shapes import Shape
from ingest_assets.requests.searching import nearest
from resources.document_source.document_ids import shown_key
from resources.document_state.model import GONE, LinkState

router = APIRouter(prefix="/api", tags=["stores"], dependencies=[READS])


class StoreShape(Shape):
    """A store, and how many documents of the caller's stand how in it."""

    id: str
    name: str
    slug: str
    kind: str
    embedder: str
    is_default: bool
    last_push_at: datetime | None = Field(description="when a document was last written into it")
    counts: dict[LinkState, int]


class Stores(Shape):
    """Every configured store, in the order of the configuration."""

    stores: list[StoreShape]


class Question(Shape):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=4000)]
    store: str = Field("", description="the slug of a store; else the default")
    k: Annotated[int, Field(ge=1, le=100)] = 5
    document_id: str | None = None
    source: str | None = None


class HitShape(Shape):
    """A chunk that was found."""

    score: float = Field(
        description="below 1, higher is nearer: the mean of the cosine similarity and of how much of the query's words "
        "the chunk has; scores of two queries are not comparable"
    )
    document_id: str
    source: str
    name: str
    title: str
    chunk_id: str
    text: str
    place: PlaceShape


class Answer(Shape):
    """The chunks nearest in meaning and words, best first."""

    store: str
    hits: list[HitShape]


@router.get("/stores")
async def stores(services: Given, caller: Asking) -> Stores:
    """Every store with counts by state, and when it was last written."""
    targets = await services.components.targets()
    labels = await counted(services, caller, lambda label: label.presence not in GONE)
    pushed = await asyncio.to_thread(services.index.last_pushes, caller.org_id)
    counts = {slug: dict.fromkeys(LinkState, 0) for slug in targets}
    for label, n in labels.items():
        for slug, state, _ in label.links:
            if slug in counts:
                counts[slug][state] += n
    return Stores(
        stores=[
            StoreShape(
                id=slug,
                name=services.store_names[slug],
                slug=slug,
                kind=target.store.kind,
                embedder=target.parts["embedder"],
                is_default=slug == services.settings.default_store,
                last_push_at=pushed.get(slug),
                counts=counts[slug],
            )
            for slug, target in targets.items()
        ]
    )


@router.post("/search")
async def search(question: Question, services: Given, caller: Asking) -> Answer:
    """Find the chunks nearest to a query, in meaning and words, among the caller's documents."""
    components = services.components
    slug = question.store or components.settings.default_store
    target = await components.target(slug)
    if question.document_id is not None:
        await document_of(services, caller, question.document_id)
    hits = await asyncio.to_thread(
        nearest,
        target,
        question.query,
        question.k,
        org_id=caller.org_id,
        document_id=question.document_id,
        source=question.source,
    )
    shown = [
        HitShape(
            score=hit.score,
            document_id=hit.document_id,
            source=hit.source_uri.partition(":")[0],
            name=shown_key(hit.source_uri),
            title=hit.title,
            chunk_id=hit.chunk_id,
            text=hit.text,
            place=place_shape(hit.place),
        )
        for hit in hits
    ]
    return Answer(store=slug, hits=shown)
