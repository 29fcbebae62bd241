"""What a request would do, found without changing anything."""

from collections.abc import Iterable, Sequence

import msgspec

from ingest_assets.components import Components
from ingest_assets.discovering import discovery_of
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.costing import SpendEstimate
from ingest_assets.requests.scope import overlaps_of, parts_of, select, select_asked
from ingest_assets.upkeep.renewal import documents_in, refusing_stores
from ingest_assets.upkeep.staleness import Configured, extraction_differences
from resources.clock import utc_now
from resources.document_source.document_ids import shown_key
from resources.document_source.document_source import SourceError
from resources.document_source.left_out import LeftOut
from resources.document_source.overlap import Overlap
from resources.document_state.model import DocStatus, LinkState, Presence, Status
from resources.document_state.take_up import Action, Mode, action_for
from sensors.discovered import describe


class Planned(msgspec.Struct, frozen=True):
    """One document, what would be done to it, and why."""

    document_id: str
    source_uri: str
    filename: str
    action: Action
    why: str


class Estimate(msgspec.Struct, frozen=True):
    """What work on some documents takes: how many are extracted, and how many chunks embedded at most."""

    n_to_extract: int
    n_chunks: int


class Forecast(msgspec.Struct, frozen=True):
    """All that would be done, by ascending source URI.

    `n_to_extract` and `n_chunks` are told of what somebody asks for: how many documents would be extracted, and how
    many chunks embedded at most, for all stores together; those a store holds already are not embedded again.
    `begun_anew`: stores that hold another embedder's vectors, so they would be emptied first and built as a whole.
    `left_out`: what lies in the sources and is no document.
    `doubts`: of which stores it is not known what they hold, so that more may be to do there.
    `overlaps`: sources that list the same.
    `spending`: what the documents that are extracted would cost, if that was asked for and the extractor is paid.
    """

    documents: list[Planned]
    n_unchanged: int
    n_busy: int
    source_errors: list[str]
    n_to_extract: int | None = None
    n_chunks: int | None = None
    begun_anew: tuple[str, ...] = ()
    spending: SpendEstimate | None = None
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)
    doubts: tuple[str, ...] = ()
    overlaps: list[Overlap] = []


async def forecast(components: Components, paths: Sequence[str], mode: Mode) -> Forecast:
    """Compare the sources with what is known, and say what follows."""
    parts = await parts_of(components, paths, remember=False)
    planned: dict[str, Planned] = {}
    errors: list[str] = []
    left_out = LeftOut()
    n_listed = 0
    if mode is not Mode.RETRY_FAILED:
        for part in parts:
            try:
                found, doubts = await discovery_of(components, part.source).preview(part.prefix)
            except SourceError as error:
                errors.append(str(error))
                continue
            if doubts.vanished_refused or doubts.incomplete:
                errors.append(describe(doubts))
            n_listed += doubts.n_unchanged
            left_out.add_all(doubts.left_out)
            for uri, why in found:
                gone = why == "vanished"
                key = discovery_of(components, part.source).id_of(uri)
                action = Action.REMOVE if gone else Action.EXTRACT
                planned[key] = Planned(key, uri, shown_key(uri), action, why)
    known = None if errors or mode is Mode.RETRY_FAILED else n_listed
    selected = await select(components, parts, mode, utc_now(), whole=not paths, n_listed=known)
    for key, doc in (await components.state.get_many(selected.document_ids)).items():
        needed = action_for(doc)
        if key not in planned and needed is not None:
            planned[key] = Planned(key, doc.source_uri, shown_key(doc.source_uri), needed, _why(doc))
    documents = sorted(planned.values(), key=lambda item: item.source_uri)
    twice = await overlaps_of(components, parts) if mode is not Mode.RETRY_FAILED else []
    return Forecast(documents, selected.n_unchanged, selected.n_busy, errors, left_out=left_out, overlaps=twice)


def estimate_of(docs: Iterable[DocStatus], asked: Asked, configured: Configured, anew: Sequence[str] = ()) -> Estimate:
    """What it takes to do what somebody asks for.

    Args:
        docs: the documents it is about.
        asked: what is asked for.
        configured: what is stale against this.
        anew: the stores that are emptied first; a document that is not stale is built there again.
    """
    n_to_extract = n_chunks = 0
    for doc in docs:
        n_to_extract += is_to_extract(doc, asked, configured)
        n_chunks += doc.n_chunks * len(asked.concerned(doc, configured) or anew)
    return Estimate(n_to_extract, n_chunks)


async def forecast_asked(components: Components, paths: Sequence[str], asked: Asked) -> Forecast:
    """What would be done of what somebody asks for."""
    parts = await parts_of(components, paths, remember=False)
    selected = await select_asked(components, asked, parts, whole=not paths)
    anew = await refusing_stores(components, asked.stores) if asked.kind is Kind.STALE else []
    ids = [*selected.document_ids, *[key for slug in anew for key in await documents_in(components.state, slug)]]
    planned = []
    configured = await components.configured()
    docs = await components.state.get_many(dict.fromkeys(ids))
    for key, doc in docs.items():
        stores = asked.concerned(doc, configured) or anew
        action = Action.EXTRACT if is_to_extract(doc, asked, configured) else Action.BUILD
        why = f"{asked.kind} in {', '.join(stores)}" if stores else _why(doc)
        planned.append(Planned(key, doc.source_uri, shown_key(doc.source_uri), action, why))
    documents = sorted(planned, key=lambda item: item.source_uri)
    takes = estimate_of(docs.values(), asked, configured, anew)
    return Forecast(documents, 0, selected.n_busy, [], takes.n_to_extract, takes.n_chunks, tuple(anew))


def is_to_extract(doc: DocStatus, asked: Asked, configured: Configured) -> bool:
    """Whether a document is extracted before it is built, if somebody asks for this."""
    if doc.extraction.status is not Status.COMPLETED or not doc.artifact:
        return True
    return asked.kind.renews_extraction and bool(extraction_differences(doc, configured))


def _why(doc: DocStatus) -> str:
    """Why a known document is due."""
    for name, phase in (("extraction", doc.extraction), ("build", doc.build)):
        if phase.status is Status.FAILED:
            return f"{name} failed ({phase.reason}), attempt {phase.attempts + 1}"
        if phase.status is Status.PENDING:
            stale = [slug for slug, link in doc.links.items() if link.state is LinkState.STALE]
            return f"{name} pending" + (f", stale in {', '.join(stale)}" if stale else "")
    return "gone from its source" if doc.presence is not Presence.PRESENT else "named"
