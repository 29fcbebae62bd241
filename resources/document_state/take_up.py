"""What is taken up by what: the one place that decides which documents a request works on, and what is done to them."""

from datetime import datetime
from enum import StrEnum

from resources.document_state.model import GONE, DocStatus, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import due_at


class Mode(StrEnum):
    """What a person or sensor asks for."""

    INCREMENTAL = "incremental"  # list the sources, then do what is due
    RESUME = "resume"  # the same, after waiting for workers that may have died
    RETRY_FAILED = "retry-failed"  # failed documents only, whatever the reason


class Action(StrEnum):
    """What a claimed document needs."""

    EXTRACT = "extract"
    BUILD = "build"
    REMOVE = "remove"


def is_taken_up(doc: DocStatus, mode: Mode, now: datetime) -> bool:
    """Whether a request of this mode works on the document.

    A document claimed by a living worker is never taken up: it is busy. Claims of dead workers are released by the
    sweep first, which makes them PENDING.
    """
    if doc.claim is not None:
        return False
    if mode is Mode.RETRY_FAILED:
        return doc.presence is Presence.PRESENT and Status.FAILED in (doc.extraction.status, doc.build.status)
    due = due_at(doc)
    return (due is not None and due <= now) or is_held_back(doc.presence, doc.extraction.status, doc.extraction.reason)


def is_held_back(presence: Presence, status: Status, reason: Reason | None) -> bool:
    """Whether a ceiling of spending holds an extraction back: whoever asks for it has perhaps raised that."""
    return presence is Presence.PRESENT and status is Status.PENDING and reason is not None


def action_for(doc: DocStatus, *, force: bool = False) -> Action | None:
    """What to do to a document somebody named or that is due; None: it is complete, or left alone.

    Args:
        doc: its record.
        force: extract again although nothing changed.
    """
    if doc.presence in GONE or doc.presence is Presence.MISSING:
        return None
    if doc.presence is not Presence.PRESENT:
        return Action.REMOVE
    if force or doc.extraction.status is not Status.COMPLETED:
        return Action.EXTRACT
    if doc.build.status is not Status.COMPLETED:
        return Action.BUILD
    return None
