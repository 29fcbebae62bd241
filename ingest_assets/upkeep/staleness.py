"""Why a document is stale, failed or pending: its record compared with the configuration, part by part.

Stale is what was made with other parts than the configuration has now. Everything that shows, counts, marks or selects
stale documents asks here.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from resources.clock import to_the_second
from resources.document_state.label import DocumentLabel, config_hash, differing_parts
from resources.document_state.links import owes_content
from resources.document_state.model import DocStatus, DocumentStoreLink, LinkState, PhaseState, Presence, Status
from resources.document_state.transitions import IMPORTED_PART


class Configured(msgspec.Struct, frozen=True):
    """The configuration's share of fingerprints: of an extraction, and of a link to each store."""

    extraction: Mapping[str, str]
    stores: Mapping[str, Mapping[str, str]]

    @property
    def extraction_hash(self) -> str:
        """As labels carry it."""
        return config_hash(self.extraction)


class PartDifference(msgspec.Struct, frozen=True):
    """One part of a fingerprint that differs: as it was recorded, and as it would be now; "" for not at all."""

    part: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.part}: {self.old or 'none'} → {self.new or 'none'}"


class Verdict(StrEnum):
    """How the extraction or a store's copy of a document stands."""

    CURRENT = "current"
    STALE = "stale"
    PENDING = "pending"
    IN_PROGRESS = "in progress"
    FAILED = "failed"
    SKIPPED = "skipped"
    MISSING = "missing"  # never built there, and not owed: the store was added later
    GONE = "gone"


class Standing(msgspec.Struct, frozen=True):
    """How a document stands in its extraction (`store` is "") or in one store, why, and what to do."""

    store: str
    verdict: Verdict
    differences: tuple[PartDifference, ...] = ()
    why: str = ""
    what_to_do: str = ""

    @property
    def is_current(self) -> bool:
        """Whether nothing differs; what is skipped or gone owes nothing."""
        return self.verdict in (Verdict.CURRENT, Verdict.SKIPPED, Verdict.GONE)


WHY_GONE = {
    Presence.MISSING: "its source lists it no more; stores keep it until the grace period is over",
    Presence.VANISHED: "its source no longer has it",
    Presence.DELETED: "its source no longer has it",
    Presence.DELETING: "somebody asked for its deletion",
    Presence.ERASED: "somebody had it deleted; `ingest restore` brings it back",
}


def standings(doc: DocStatus, configured: Configured, stores: Collection[str]) -> list[Standing]:
    """The extraction's standing, then that in each of `stores`."""
    if doc.presence is not Presence.PRESENT:
        held = [slug for slug in stores if slug in doc.links]
        return [
            Standing("", Verdict.GONE, why=WHY_GONE[doc.presence]),
            *(Standing(slug, Verdict.PENDING, why="to be removed", what_to_do="`ingest run`") for slug in held),
        ]
    return [_extraction(doc, configured), *(_store(doc, slug, configured) for slug in stores)]


def extraction_differences(doc: DocStatus, configured: Configured) -> tuple[PartDifference, ...]:
    """In what a completed extraction differs from the configuration."""
    if doc.extraction.status is not Status.COMPLETED or IMPORTED_PART in doc.extraction.parts:
        return ()
    return _differences(doc.extraction.parts, configured.extraction)


def is_at_configuration(doc: DocStatus, slug: str, configured: Configured) -> bool:
    """Whether what a store holds of the document was made with today's configuration, the extraction's included."""
    link = doc.links[slug]
    return not _differences(link.parts, configured.stores[slug]) and not extraction_differences(doc, configured)


def held_at_configuration(doc: DocStatus, configured: Configured) -> dict[str, bool]:
    """For each configured store that the document is due and held in: whether that is as `is_at_configuration` says."""
    held = [slug for slug in doc.due_in if slug in doc.links and slug in configured.stores]
    return {slug: is_at_configuration(doc, slug, configured) for slug in held}


def is_stale(doc: DocStatus, slug: str, configured: Configured) -> bool:
    """Whether a store holds the document, and not as the configuration would have it. Failed is not stale."""
    link = doc.links.get(slug)
    if link is None or slug not in doc.due_in or link.state is LinkState.FAILED:
        return False
    return link.state is LinkState.STALE or not is_at_configuration(doc, slug, configured)


def stale_parts(label: DocumentLabel, slug: str, configured: Configured) -> list[str]:
    """In which parts the documents of a label are stale in a store; [] if they are not, or not there."""
    if label.presence is not Presence.PRESENT:
        return []
    for name, state, config in label.links:
        if name == slug and state is not LinkState.FAILED:
            parts = _label_differences(label, config, slug, configured)
            return parts or (["content"] if state is LinkState.STALE else [])
    return []


def is_mismarked(label: DocumentLabel, configured: Configured) -> bool:
    """Whether a link of a label's documents may have to be marked, unmarked, or is of a store configured no more."""
    if label.presence is not Presence.PRESENT:
        return False
    for slug, state, config in label.links:
        if slug not in configured.stores:
            return True
        if state is LinkState.FAILED:
            continue
        if state is LinkState.STALE and label.extraction is not Status.COMPLETED:
            continue  # stale by content, most of them: reading all of these would find nothing
        differs = bool(_label_differences(label, config, slug, configured))
        if differs is (state is LinkState.INGESTED):
            return True
    return False


def _label_differences(label: DocumentLabel, link_config: str, slug: str, configured: Configured) -> list[str]:
    found = differing_parts(link_config, config_hash(configured.stores[slug]))
    if label.extraction is Status.COMPLETED and not label.extraction_config.startswith(f"{IMPORTED_PART}="):
        found = differing_parts(label.extraction_config, configured.extraction_hash) + found
    return found


_NOT_DONE = {Status.FAILED: Verdict.FAILED, Status.SKIPPED: Verdict.SKIPPED, Status.PENDING: Verdict.PENDING}


def _extraction(doc: DocStatus, configured: Configured) -> Standing:
    phase = doc.extraction
    if phase.reason is not None:  # FAILED and SKIPPED have one, and PENDING if a ceiling holds it back
        return Standing("", _NOT_DONE[phase.status], why=_reason(phase), what_to_do=phase.reason.what_to_do)
    if phase.status is Status.IN_PROGRESS:
        return Standing("", Verdict.IN_PROGRESS, why="a worker has it")
    if phase.status is Status.PENDING:
        why = "its content changed, and is not read yet" if doc.artifact else "it is not read yet"
        return Standing("", Verdict.PENDING, why=why, what_to_do="`ingest run`")
    if IMPORTED_PART in phase.parts:
        return Standing("", Verdict.CURRENT, why="extracted by another tool")
    if differences := extraction_differences(doc, configured):
        return Standing("", Verdict.STALE, differences, what_to_do="`ingest run --stale`")
    return Standing("", Verdict.CURRENT)


def _store(doc: DocStatus, slug: str, configured: Configured) -> Standing:
    link = doc.links.get(slug)
    if doc.extraction.status is Status.SKIPPED:
        return Standing(slug, Verdict.SKIPPED, why="it is not extracted")
    if slug not in doc.due_in and link is not None:
        why = "the store was not in ingest.toml for a time"
        return Standing(slug, Verdict.STALE, why=why, what_to_do="`ingest run`")
    if slug not in doc.due_in:
        why = "the store was added later"
        return Standing(slug, Verdict.MISSING, why=why, what_to_do=f"`ingest run --store {slug} --missing`")
    if doc.claim is not None:
        return Standing(slug, Verdict.IN_PROGRESS, why="a worker has it")
    if link is None:
        waits = doc.extraction.status is Status.FAILED
        why = "it is not extracted" if waits else "it is not built there yet"
        return Standing(slug, Verdict.PENDING, why=why, what_to_do="" if waits else "`ingest run`")
    return _failed(link) if link.state is LinkState.FAILED else _held(doc, link, configured)


def _failed(link: DocumentStoreLink) -> Standing:
    what_to_do = link.reason.what_to_do if link.reason else ""
    return Standing(link.store, Verdict.FAILED, why=f"{link.reason}: {link.error_message}", what_to_do=what_to_do)


def _held(doc: DocStatus, link: DocumentStoreLink, configured: Configured) -> Standing:
    """The standing in a store that holds some version of the document."""
    by_configuration = (
        *extraction_differences(doc, configured),
        *_differences(link.parts, configured.stores[link.store]),
    )
    content = _content_difference(doc, link)
    if link.state is LinkState.INGESTED and not by_configuration and not content:
        return Standing(link.store, Verdict.CURRENT)
    owed = owes_content(doc, link)
    if doc.extraction.status is Status.FAILED:
        why, what_to_do = "holds what could be read last" if owed else "", ""
    elif owed:
        why, what_to_do = "is rebuilt by itself", "`ingest run`"
    else:
        why, what_to_do = _corrected_since(doc, link), f"`ingest run --store {link.store} --stale`"
    if link.on_request and not by_configuration and not content:
        why, what_to_do = "marked under another configuration", "`ingest plan --apply`"
    return Standing(link.store, Verdict.STALE, (*content, *by_configuration), why, what_to_do)


def _corrected_since(doc: DocStatus, link: DocumentStoreLink) -> str:
    """Who has corrected chunks since the store was written; "" for nobody."""
    made = doc.corrections
    if made is None or link.parts.get("content") == doc.artifact_hash:
        return ""
    if link.last_push_at is not None and link.last_push_at > made.at:
        return ""
    what = f"chunks corrected by {made.by}" if made.n else f"corrections taken back by {made.by}"
    return f"{what} at {to_the_second(made.at)} UTC"


def _content_difference(doc: DocStatus, link: DocumentStoreLink) -> tuple[PartDifference, ...]:
    """What the store holds against what extraction produced last, or is still to produce."""
    held = link.parts.get("content", "")
    if owes_content(doc, link) and doc.extraction.status is not Status.COMPLETED:
        return (PartDifference("content", held[:8], "not extracted yet"),)
    if held != doc.artifact_hash:
        return (PartDifference("content", held[:8], doc.artifact_hash[:8]),)
    return ()


def _differences(recorded: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[PartDifference, ...]:
    names = sorted((recorded.keys() | wanted.keys()) - {"content"})
    return tuple(
        PartDifference(name, recorded.get(name, ""), wanted.get(name, ""))
        for name in names
        if recorded.get(name) != wanted.get(name)
    )


def _reason(phase: PhaseState) -> str:
    said = f"{phase.reason}: {phase.error}" if phase.error else str(phase.reason)
    if phase.waits_until is not None:
        return f"{said} Tried again at {to_the_second(phase.waits_until)} UTC."
    return said
