"""What a document went through, kept in its own record: the last changes of its extraction, its links, its presence.

A change is noted by the very write that makes it, so the history is exactly as true as the record. Claims are not
noted: they end in one of these, or in the work being given back.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from resources.document_state.reasons import Reason

if TYPE_CHECKING:
    from resources.document_state.model import DocStatus, DocumentStoreLink

# A change is about 80 bytes, so a record of 1 KB grows by a fifth as a rule, and at most doubles.
REMEMBERED = 12


class Part(StrEnum):
    """What of a document changed; a link is `store` with its slug."""

    EXTRACTION = "extraction"
    STORE = "store"
    PRESENCE = "presence"


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One change.

    Attributes:
        seconds: when, since 1970.
        part: of what.
        state: what it is since then: a Status, LinkState or Presence; "" for a link that is no more.
        store: of which store, for a link.
        reason: why, where it failed or was skipped.
        run_id: the run that brought it about; "" for a person or a listing.
    """

    seconds: int
    part: Part
    state: str
    store: str = ""
    reason: Reason | None = None
    run_id: str = ""

    @property
    def at(self) -> datetime:
        """When."""
        return datetime.fromtimestamp(self.seconds, UTC)


def noted(before: "DocStatus", after: "DocStatus", now: datetime) -> tuple[Change, ...]:
    """The history after a change; the oldest is forgotten."""
    seconds = int(now.timestamp())
    run_id = after.last_run_id if before.claim is not None or after.claim is not None else ""
    new = []
    if before.presence is not after.presence:
        new.append(Change(seconds, Part.PRESENCE, after.presence, run_id=run_id))
    extraction = after.extraction
    if extraction.status is not before.extraction.status and extraction.status != "IN_PROGRESS":
        new.append(Change(seconds, Part.EXTRACTION, extraction.status, "", extraction.reason, run_id))
    for slug in sorted(before.links.keys() | after.links.keys()):
        link = after.links.get(slug)
        if _seen(before.links.get(slug)) != _seen(link):
            state, reason = ("", None) if link is None else (link.state.value, link.reason)
            new.append(Change(seconds, Part.STORE, state, slug, reason, run_id))
    return (*before.history, *new)[-REMEMBERED:] if new else before.history


def _seen(link: "DocumentStoreLink | None") -> tuple[object, ...]:
    """What of a link is worth a line: also that it was tried again to no other end."""
    return () if link is None else (link.state, link.reason, link.last_push_at, link.last_run_id)
