"""The commands that look: status, show, search."""

import os
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from ingest_assets.cli.output import Exit, complain, print_json, print_table, say, shown_time
from ingest_assets.components import Components
from ingest_assets.parsing import sandbox
from ingest_assets.requests.searching import nearest
from ingest_assets.settings import CONFIG_FILE, Settings
from ingest_assets.settings_sections import StoreSettings
from ingest_assets.upkeep.renewal import n_not_found
from ingest_assets.upkeep.settling import doubts
from ingest_assets.upkeep.staleness import WHY_GONE
from resources.artifact_store.artifact import Place
from resources.counting import counted
from resources.document_source.document_ids import document_id, shown_key, source_uri, uri_as_named
from resources.document_source.document_source import DocumentSource
from resources.document_state.label import DocumentLabel
from resources.document_state.model import (
    GONE,
    DocStatus,
    DocumentStoreLink,
    LinkState,
    Phase,
    PhaseState,
    Presence,
    Status,
    link_id,
)
from resources.document_state.reasons import Reason
from resources.store.store import Hit

_EXCERPT = 300


_HOW_TO_BEGIN = "`ingest run` lists the sources and ingests what it finds."


def unless_configured(settings: Settings) -> str:
    """What to think of where nothing was found and there is no ingest.toml: most likely this is the wrong folder."""
    if settings.config_file is not None:
        return ""
    return (
        f" There is no {CONFIG_FILE} in {settings.base}, so the defaults hold: is this the folder you mean? "
        "`ingest run FOLDER` ingests a folder without one."
    )


class UnknownDocumentError(ValueError):
    """Nobody knows the document that was named."""


def candidate_ids(sources: Iterable[DocumentSource], named: str) -> list[str]:
    """The ids a document may have that somebody names by its id, source URI, key in a source, path, or `s3://bucket/key`."""
    is_text = named.isascii() or not any("\ud800" <= c <= "\udfff" for c in named)
    candidates = [named] if is_text else []
    for source in sources:
        if is_text:
            candidates.append(document_id(source.org_id, named))
        keys = [os.fsencode(named), source.key_of_place(named)]
        for uri_of in (source_uri, uri_as_named):
            candidates += [document_id(source.org_id, uri_of(source.name, key)) for key in keys if key is not None]
    return list(dict.fromkeys(candidates))


async def find_document(components: Components, named: str) -> DocStatus:
    """A document by its id, its source URI, its key in a source, its path, or `s3://bucket/key`.

    Raises:
        UnknownDocumentError: no record fits.
        BackendCorruptError: its record is damaged.
    """
    candidates = candidate_ids((await components.sources()).values(), named)
    found = await components.state.get_many(candidates)
    for candidate in candidates:
        if candidate in found:
            return found[candidate]
        if candidate in components.state.damaged and (doc := await components.state.get_status(candidate)):
            return doc
    hint = "" if await components.state.counts() else unless_configured(components.settings)
    raise UnknownDocumentError(
        f"No document '{named}' is known. Name it by id, by path, or by its key in a source; `ingest run` lists them."
        f"{hint}"
    )


class _Counts:
    """Documents by what `ingest status` shows."""

    def __init__(self, stores: Iterable[str]) -> None:
        self.documents = 0
        self.phases: dict[str, Counter[str]] = {phase.value: Counter() for phase in Phase}
        self.reasons: Counter[str] = Counter()
        self.stores: dict[str, Counter[str]] = {slug: Counter() for slug in stores}
        self.missing = Counter(dict.fromkeys(self.stores, 0))
        self.lost_sources: Counter[str] = Counter()
        self.leaving: Counter[str] = Counter()

    def add(self, label: DocumentLabel, n: int, sources: Collection[str]) -> None:
        """Count n documents of a label."""
        self.documents += n
        for phase in Phase:
            self.phases[phase.value][label.status(phase).value] += n
        reason = label.extraction_reason or label.build_reason
        if reason is not None:
            self.reasons[reason.value] += n
        for slug, state, _ in label.links:
            self.stores.setdefault(slug, Counter())[state.value] += n
        if label.presence is Presence.PRESENT and label.build is Status.COMPLETED:
            self.missing.update(dict.fromkeys(self.missing.keys() - {slug for slug, *_ in label.links}, n))
        if label.presence is not Presence.PRESENT:
            self.leaving[label.presence.value] += n
        if label.source not in sources:
            self.lost_sources[label.source] += n

    def fields(self) -> dict[str, Any]:
        """As programs see it."""
        return {
            "documents": self.documents,
            **self.phases,
            "reasons": self.reasons,
            "stores": self.stores,
            "missing": +self.missing,
            "lost_sources": self.lost_sources,
            "leaving": self.leaving,
            "parsers_not_confined": list(sandbox.missing()),
        }


async def status(components: Components, as_json: bool) -> int:
    """See `ingest status`."""
    counts = _Counts(store.slug for store in components.settings.stores)
    sources = await components.sources()
    for label, n in (await components.state.counts()).items():
        if label.presence not in GONE:
            counts.add(label, n, sources)
    doubted = await doubts(components)
    if as_json:
        print_json({**counts.fields(), "doubts": doubted})
    else:
        _print_status(counts, components.settings)
        for doubt in doubted:
            complain(doubt)
    return Exit.DONE


_LEAVING = {
    Presence.MISSING: "Not listed any more, and kept in their stores until the grace period is over",
    Presence.VANISHED: "Gone from their source, and being removed from their stores",
    Presence.DELETING: "Being deleted, because somebody asked for it",
}


def _print_status(counts: _Counts, settings: Settings) -> None:
    for lost in sandbox.missing():
        say(f"This machine cannot take away from parsers: {lost}. See docs/security.md.")
    say(counted(counts.documents))
    if not counts.documents:
        say(f"Nothing is known yet. {_HOW_TO_BEGIN}{unless_configured(settings)}")
        return
    rows = [(phase, name, n) for phase, found in counts.phases.items() for name, n in sorted(found.items())]
    known_as = {store.slug: _store_name(store, settings) for store in settings.stores}
    rows += [
        (f"store {known_as.get(slug, slug)}", name, n)
        for slug, found in counts.stores.items()
        for name, n in sorted(found.items())
    ]
    print_table(["where", "state", "#documents"], rows)
    for slug, n in (+counts.missing).items():
        say(f"\nNot in store '{slug}': {counted(n)}. `ingest run --store {slug} --missing` builds them there.")
    for presence, n in sorted(counts.leaving.items()):
        say(f"\n{_LEAVING[Presence(presence)]}: {counted(n)}.")
    for source, n in sorted(counts.lost_sources.items()):
        say(f"\nOf source '{source}', which is not configured any more: {counted(n)}, left as they are.")
    if counts.reasons:
        say("")
        reasons = [(name, n, Reason(name).what_to_do) for name, n in sorted(counts.reasons.items())]
        print_table(["reason", "#documents", "what to do"], reasons)


def _store_name(store: StoreSettings, settings: Settings) -> str:
    name = f"{store.slug} ({store.name})" if store.name not in ("", store.slug) else store.slug
    return f"{name}, the default" if store.slug == settings.default_store and len(settings.stores) > 1 else name


async def show(components: Components, named: str, as_json: bool) -> int:
    """See `ingest show`."""
    doc = await find_document(components, named)
    if as_json:
        print_json(_record_fields(doc))
    else:
        print_record(doc)
    return Exit.DONE


def print_record(doc: DocStatus) -> None:
    """A record as people see it: what there is to say of it, and nothing else."""
    amounts = f"{doc.n_chunks:,}, {doc.n_entries:,}, {doc.n_chars:,}" if doc.artifact else ""
    rows: list[tuple[str, object]] = [
        ("document", doc.document_id),
        ("title", doc.title),
        ("source", f"{doc.source}: {shown_key(doc.source_uri)}"),
        *_standing(doc),
        ("chunks, entries, characters", amounts),
        ("type", doc.media_type),
        ("bytes", f"{doc.size:,}"),
        ("read by", doc.parser),
        ("pages, of them without text", f"{doc.n_pages:,}, {doc.n_empty_pages:,}" if doc.n_pages else ""),
        ("last extracted turn", "" if doc.last_extracted_turn is None else f"{doc.last_extracted_turn:,}, from 0"),
        ("last run", doc.last_run_id),
        ("known since (UTC)", shown_time(doc.created_at)),
        ("changed (UTC)", shown_time(doc.updated_at)),
    ]
    if doc.parent:
        rows.insert(3, ("lies in", shown_key(doc.parent)))
    if (made := doc.corrections) is not None:
        rows.append(("corrections", f"{made.n}, last changed by {made.by} at {shown_time(made.at)} UTC"))
    rows += [("warning", warning) for warning in doc.warnings]
    rows += [(f"part {name}", value) for name, value in sorted(doc.extraction.parts.items())]
    if doc.claim is not None:
        rows.append(("claimed by", f"worker {doc.claim.worker_id}, token {doc.claim.token}"))
    print_table(["what", "value"], [(what, value) for what, value in rows if str(value)])
    if doc.links:
        say("")
        print_table(
            ["store", "state", "last push (UTC)", "why"],
            [(slug, link.state, shown_time(link.last_push_at), _why(link)) for slug, link in sorted(doc.links.items())],
        )


def _record_fields(doc: DocStatus) -> dict[str, Any]:
    """A record as programs see it: with what is derived from it, and each link's id."""
    fields: dict[str, Any] = msgspec.to_builtins(doc)
    for slug, link in fields.get("links", {}).items():
        link["id"] = link_id(doc.document_id, slug)
    return {**fields, "lifecycle": doc.lifecycle, "parent": doc.parent or None}


async def search(
    components: Components, query: str, store: str, k: int, document: str, source: str, as_json: bool
) -> int:
    """See `ingest search`."""
    slug = store or components.settings.default_store
    target = await components.target(slug)
    only = (await find_document(components, document)).document_id if document else None
    org_id = components.settings.org_id
    hits = nearest(target, query, k, org_id=org_id, document_id=only, source=source or None)
    if components.state.counts_cheaply and (n := await n_not_found(components, slug)):
        complain(f"Store '{slug}' is being built anew, and lacks {counted(n)} yet. `ingest run` goes on.")
    for doubt in await doubts(components, slug):
        complain(doubt)
    if as_json:
        print_json([_hit(hit) for hit in hits])
        return Exit.DONE
    if not hits:
        return await _explain_no_hit(components, slug)
    for number, hit in enumerate(hits, 1):
        say(f"{number}. {hit.score:.3f}  {hit.title}  ({shown_key(hit.source_uri)}{place_of(hit.place)})")
        text = " ".join(hit.text.split())
        say(f"   {text[:_EXCERPT]}{'…' if len(text) > _EXCERPT else ''}")
    return Exit.DONE


async def _explain_no_hit(components: Components, slug: str) -> int:
    counts = await components.state.counts()
    if all(label.presence in GONE for label in counts):
        say(f"Nothing is ingested yet. {_HOW_TO_BEGIN}{unless_configured(components.settings)}")
        return Exit.DONE
    recorded = sum(
        n
        for label, n in counts.items()
        if any(store == slug and state is LinkState.INGESTED for store, state, _ in label.links)
    )
    if recorded and not (await components.target(slug)).store.held_documents(limit=1):
        complain(
            f"Store '{slug}' is empty, but should hold {counted(recorded)}: it was lost or replaced. "
            f"`ingest verify --store {slug} --repair` builds it again."
        )
        return Exit.FAILED
    say(f"Nothing found in store '{slug}'. `ingest status` shows what it holds.")
    return Exit.DONE


def _hit(hit: Hit) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(hit)
    return {**fields, "source": hit.source_uri.partition(":")[0], "filename": shown_key(hit.source_uri)}


def place_of(place: Place) -> str:
    """Where in its document a chunk stands, for people: ", Heading > Heading, page 3"."""
    parts = [" > ".join(place.headings)] if place.headings else []
    if place.page is not None:
        parts.append(f"page {place.page}")
    if place.sheet is not None:
        parts.append(f"sheet {place.sheet}")
    if place.row is not None:
        parts.append(f"row {place.row}")
    return "".join(f", {part}" for part in parts)


def _standing(doc: DocStatus) -> list[tuple[str, str]]:
    """How a document stands; the phases of one that is gone owe nothing, whatever their status is called."""
    if doc.presence in GONE:
        return [("lifecycle", f"{doc.lifecycle}: {WHY_GONE[doc.presence]}")]
    return [
        ("lifecycle", f"{doc.lifecycle} ({doc.presence})"),
        *_phase(Phase.EXTRACTION, doc.extraction),
        *_phase(Phase.BUILD, doc.build),
    ]


def _phase(name: str, phase: PhaseState) -> list[tuple[str, str]]:
    """How a phase stands; if something is wrong, why, and what to do, each in a row of its own."""
    if phase.reason is None:
        return [(name, phase.status.value)]
    rows = [
        (name, f"{phase.status}: {phase.reason}"),
        ("error", phase.error),
        ("what to do", phase.reason.what_to_do),
    ]
    if phase.attempts:
        again = phase.waits_until
        when = f"next at {shown_time(again)} UTC" if again else "not tried again by itself"
        rows.append(("attempts", f"{phase.attempts}, {when}"))
    return rows


def _why(link: DocumentStoreLink) -> str:
    return f"{link.reason}: {link.error_message}" if link.reason else ""
