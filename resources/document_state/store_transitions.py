"""What becomes of a document's record when something becomes of a whole store.

Each function takes a record and gives the next one, as in `transitions`; nothing here reads or writes.
"""

from collections.abc import Collection
from datetime import datetime

import msgspec

from resources.document_state.links import mark_stale, owes_content, superseded
from resources.document_state.model import GONE, LISTED, DocStatus, DocumentStoreLink, LinkState, Presence
from resources.document_state.removals import deletion_requested, vanished
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


def store_kept(doc: DocStatus, store: str, now: datetime) -> DocStatus:
    """A store that was out of the configuration is back, and holds the document still: what it holds is to be true.

    A document that is gone leaves it, whoever had it removed. Another one belongs there again: what is stale there by
    content is owed, and what had failed is tried again.

    Returns:
        The next record, or `doc` itself if nothing is to change.
    """
    if doc.presence in GONE:
        return deletion_requested(doc, now) if doc.presence is Presence.ERASED else vanished(doc, now)
    if store in doc.due_in or doc.presence not in LISTED:
        return doc
    link = doc.links[store]
    links = {**doc.links, store: mark_stale(link) if link.state is LinkState.FAILED else link}
    return derived(doc, now, links=links, due_in=(*doc.due_in, store))


def store_lacks(doc: DocStatus, store: str, now: datetime) -> DocStatus:
    """A store does not hold what its link speaks of: it is as if never built there; what was owed there stays owed."""
    is_owed = store in doc.due_in and owes_content(doc, doc.links[store])
    if doc.presence in LISTED and not is_owed:
        return store_dropped(doc, store, now)
    return derived(doc, now, links={slug: link for slug, link in doc.links.items() if slug != store})


def store_holds(doc: DocStatus, store: str, chunkset_hash: str, now: datetime) -> DocStatus:
    """A store was found to hold a document with these chunks: where no link says so, that is to be replaced or removed.

    Returns:
        The next record, or `doc` itself if its link says the same, or that it is owed.
    """
    link = doc.links.get(store)
    if link is None:
        found = DocumentStoreLink(store, LinkState.STALE)
        return store_kept(msgspec.structs.replace(doc, links={**doc.links, store: found}), store, now)
    if owes_content(doc, link) or link.chunkset_hash == chunkset_hash or doc.presence not in LISTED:
        return doc
    return derived(doc, now, links={**doc.links, store: superseded(link)})


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
