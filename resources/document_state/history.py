"""What a document went through, kept in its own record: the last changes of its extraction, its links, its presence.

A change is noted by the very write that makes it, so the history is exactly as true as the record. Claims are not
noted: they end in one of these, or in the work being given back.
"""

from collections.abc import Iterator
from datetime import datetime

from resources.document_state.change import Change, Part
from resources.document_state.model import DocStatus, DocumentStoreLink, Status
from resources.document_state.reasons import Reason

# A change is about 80 bytes, so a record of 1 KB grows by a fifth as a rule, and at most doubles.
REMEMBERED = 12


def noted(before: DocStatus, after: DocStatus, now: datetime) -> tuple[Change, ...]:
    """The history after a change; the oldest is forgotten."""
    changes = list(_changes(before, after))
    if not changes:
        return before.history
    seconds = int(now.timestamp())
    run_id = after.last_run_id if before.claim is not None or after.claim is not None else ""
    new = [Change(seconds, *change, run_id) for change in changes]
    return (*before.history, *new)[-REMEMBERED:]


def _changes(before: DocStatus, after: DocStatus) -> Iterator[tuple[Part, str, str, Reason | None]]:
    """What has changed, to what state it did, in which store, and why."""
    if before.presence is not after.presence:
        yield Part.PRESENCE, after.presence, "", None
    extraction = after.extraction
    if extraction.status is not before.extraction.status and extraction.status is not Status.IN_PROGRESS:
        yield Part.EXTRACTION, extraction.status, "", extraction.reason
    if before.links is after.links:
        return
    for slug in sorted(before.links.keys() | after.links.keys()):
        link = after.links.get(slug)
        if _seen(before.links.get(slug)) != _seen(link):
            state, reason = ("", None) if link is None else (link.state.value, link.reason)
            yield Part.STORE, state, slug, reason


def _seen(link: DocumentStoreLink | None) -> tuple[object, ...]:
    """What of a link is worth a line: also that it was tried again to no other end."""
    return () if link is None else (link.state, link.reason, link.last_push_at, link.last_run_id)
