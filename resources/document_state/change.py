"""One change in a document's history, as its record keeps it."""

from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from resources.document_state.reasons import Reason


class Part(StrEnum):
    """What of a document changed; a link is `store` with its slug."""

    EXTRACTION = "extraction"
    STORE = "store"
    PRESENCE = "presence"


class Change(msgspec.Struct, frozen=True, gc=False, array_like=True):
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
