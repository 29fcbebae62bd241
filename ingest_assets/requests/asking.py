"""What a person asks for beyond what is due: stale, failed or missing documents, of some stores, picked by facets.

Documents are picked by their labels, so that none is read which does not fit, and looked at once more when a run claims
them: what somebody else has done meanwhile is not done again.
"""

import re
from enum import StrEnum

import msgspec

from ingest_assets.engine.selection import Selection
from ingest_assets.upkeep.staleness import Configured, is_stale, stale_parts
from resources.document_state.label import DocumentLabel
from resources.document_state.model import DocStatus, LinkState, Presence, Status
from resources.document_state.reasons import Reason


class AskedWronglyError(ValueError):
    """Options that do not go together, or a facet or value that nobody knows."""


class Kind(StrEnum):
    """What is asked for."""

    STALE = "stale"  # made with another configuration: made anew, extraction included where it differs
    FAILED = "failed"  # failed: tried again, whatever the reason was
    MISSING = "missing"  # extracted, and not in a store that was added later: built there
    NAMED = "named"  # whatever fits: done as if each had been named
    REWRITE = "rewrite"  # what stores hold is not to be trusted: written anew from what was extracted
    REPORT = "report"  # complete, and Dagster does not know: reported again
    CHOSEN = "chosen"  # picked by a person: brought up to date where he says, also in a store they are not in yet
    RENEWED = "renewed"  # the same, only in stores they belong into already

    @property
    def renews_extraction(self) -> bool:
        """Whether what was extracted with another configuration is extracted anew."""
        return self in (Kind.STALE, Kind.CHOSEN, Kind.RENEWED)


class Where(msgspec.Struct, frozen=True):
    """Facets that documents must have: one of the values of each facet that has any."""

    source: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    state: tuple[str, ...] = ()

    def fits(self, label: DocumentLabel, stores: tuple[str, ...]) -> bool:
        """Whether the documents of a label have them; `state` is looked for in these stores, () for any."""
        reasons = {str(label.extraction_reason or ""), str(label.build_reason or "")}
        states = {str(state) for slug, state, _ in label.links if not stores or slug in stores}
        return (
            (not self.source or label.source in self.source)
            and (not self.reason or not reasons.isdisjoint(self.reason))
            and (not self.status or not {str(label.extraction), str(label.build)}.isdisjoint(self.status))
            and (not self.state or not states.isdisjoint(self.state))
        )


_VALUES: dict[str, type[StrEnum] | None] = {"source": None, "reason": Reason, "status": Status, "state": LinkState}


def parse_where(text: str) -> Where:
    """Facets as they are typed: `source=papers, status=FAILED`; a facet named twice may have either value.

    Raises:
        AskedWronglyError: the facet or its value is unknown; the message lists those there are.
    """
    found: dict[str, tuple[str, ...]] = {}
    for item in re.split(r"[,\s]+", text.strip()):
        facet, equals, value = item.partition("=")
        if facet not in _VALUES or not equals or not value:
            known = ", ".join(f"{name}=…" for name in _VALUES)
            raise AskedWronglyError(f"'{item}' is no facet to choose documents by. Known: {known}.")
        found[facet] = (*found.get(facet, ()), _known_value(facet, value))
    return Where(**found)


class Asked(msgspec.Struct, frozen=True):
    """What is asked for. `stores`: only there; () for every store, and for the extraction too where it failed."""

    kind: Kind
    stores: tuple[str, ...] = ()
    where: Where = Where()

    def fits(self, label: DocumentLabel, configured: Configured) -> bool:
        """Whether the documents of a label are asked for."""
        if label.presence is not Presence.PRESENT or not self.where.fits(label, self.stores):
            return False
        stores = self.stores or tuple(configured.stores)
        match self.kind:
            case Kind.STALE:
                is_done = label.extraction is Status.COMPLETED
                return is_done and any(stale_parts(label, slug, configured) for slug in stores)
            case Kind.FAILED:
                in_stores = any(state is LinkState.FAILED for slug, state, _ in label.links if slug in stores)
                return in_stores or (not self.stores and label.extraction is Status.FAILED)
            case Kind.MISSING:
                return label.extraction is Status.COMPLETED and not {slug for slug, *_ in label.links}.issuperset(
                    stores
                )
            case Kind.NAMED | Kind.CHOSEN | Kind.RENEWED:
                return True
            case Kind.REWRITE | Kind.REPORT:
                return label.extraction is Status.COMPLETED

    def concerned(self, doc: DocStatus, configured: Configured) -> list[str]:
        """The stores in which a document is what is asked for."""
        stores = self.stores or tuple(configured.stores)
        match self.kind:
            case Kind.STALE:
                return [slug for slug in stores if is_stale(doc, slug, configured)]
            case Kind.FAILED:
                held = {slug: link for slug, link in doc.links.items() if slug in doc.due_in}
                return [slug for slug in stores if slug in held and held[slug].state is LinkState.FAILED]
            case Kind.MISSING:
                return [slug for slug in stores if slug not in doc.links or slug not in doc.due_in]
            case Kind.NAMED | Kind.RENEWED | Kind.REWRITE | Kind.REPORT:
                return [slug for slug in stores if slug in doc.due_in]
            case Kind.CHOSEN:
                return list(stores)

    def selection(self, configured: Configured) -> Selection:
        """What of the documents a run may do."""
        stores = self.stores or tuple(configured.stores)
        return Selection(
            stores,
            named=True,
            only_due=self.kind not in (Kind.MISSING, Kind.CHOSEN),
            renew_stores=self.kind is Kind.NAMED or self.kind.renews_extraction,
            renew_extraction=self.kind.renews_extraction,
            rewrite=self.kind is Kind.REWRITE,
            wants=lambda doc: self._wants(doc, configured),
        )

    def _wants(self, doc: DocStatus, configured: Configured) -> bool:
        extraction_failed = self.kind is Kind.FAILED and not self.stores and doc.extraction.status is Status.FAILED
        if self.kind in (Kind.REWRITE, Kind.REPORT) and doc.extraction.status is not Status.COMPLETED:
            return False  # it would be extracted, which nobody asked for
        whatever = self.kind in (Kind.NAMED, Kind.CHOSEN, Kind.RENEWED)
        return whatever or extraction_failed or bool(self.concerned(doc, configured))


def asked_for(store: str, *, stale: bool, failed: bool, missing: bool, where: str) -> Asked | None:
    """What the options of a command ask for; None: what is due.

    Raises:
        AskedWronglyError: the options do not go together.
    """
    kinds = [kind for kind, given in ((Kind.STALE, stale), (Kind.FAILED, failed), (Kind.MISSING, missing)) if given]
    if len(kinds) > 1:
        raise AskedWronglyError("Of --stale, --failed and --missing only one can be asked for at a time.")
    if not kinds and not where:
        if store:
            raise AskedWronglyError("--store goes with --stale, --failed, --missing or --where.")
        return None
    return Asked(kinds[0] if kinds else Kind.NAMED, (store,) if store else (), parse_where(where) if where else Where())


def _known_value(facet: str, value: str) -> str:
    """A value as labels spell it; a source may be any."""
    kind = _VALUES[facet]
    if kind is None:
        return value
    for member in kind:
        if member.value.lower() == value.lower():
            return member.value
    known = ", ".join(member.value for member in kind)
    raise AskedWronglyError(f"'{value}' is no {facet}. Known: {known}.")
