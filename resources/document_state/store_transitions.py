"""What becomes of a document's record when something becomes of a whole store.

Each function takes a record and gives the next one, as in `transitions`; nothing here reads or writes.
"""

from collections.abc import Collection
from datetime import datetime

import msgspec

from resources.document_state.links import mark_stale, superseded
from resources.document_state.model import DocStatus, LinkState
from resources.document_state.transitions import ALLOWED, derived


def store_dropped(doc: DocStatus, store: str, now: datetime) -> DocStatus:
    """A store's data goes as a whole: the document is not there any more, and not due there unless it was owed."""
    links = {slug: link for slug, link in doc.links.items() if slug != store}
    not_due = derived(doc, now, links=links, due_in=tuple(slug for slug in doc.due_in if slug != store))
    return not_due if _may_follow(doc, not_due) else derived(doc, now, links=links)


def store_emptied(doc: DocStatus, store: str, now: datetime) -> DocStatus:
    """A store was emptied to be built anew: what it held of the document is owed to it, whatever it had failed at.

    Owed, and not on request: somebody has asked for it, and a death does not forget that.

    Returns:
        The next record, or `doc` itself if the store never had the document.
    """
    if store not in doc.links:
        return doc
    links = {**doc.links, store: superseded(doc.links[store])}
    build = msgspec.structs.replace(doc.build, attempts=0, next_attempt_at=None)
    return derived(doc, now, links=links, build=build)


def stores_unconfigured(doc: DocStatus, configured: Collection[str], now: datetime) -> DocStatus:
    """Stores were taken out of the configuration: what they hold stays, and counts no more for the document.

    A build that failed just there is due once more, since only a claim may complete it; it finds nothing to do.

    Returns:
        The next record, or `doc` itself if nothing is to change.
    """
    due_in = tuple(slug for slug in doc.due_in if slug in configured)
    if due_in == doc.due_in:
        return doc
    not_due = derived(doc, now, due_in=due_in)
    if _may_follow(doc, not_due):
        return not_due
    links = {
        slug: mark_stale(link) if link.state is LinkState.FAILED and slug not in configured else link
        for slug, link in doc.links.items()
    }
    return derived(doc, now, links=links) if links != doc.links else doc


def _may_follow(doc: DocStatus, changed: DocStatus) -> bool:
    before, after = doc.build.status, changed.build.status
    return before is after or after in ALLOWED[before]
