"""The changes on a document's way out: missing from its source, to be removed, removed; and the ways back.

Each function takes a record and gives the next one, as in `transitions`; nothing here reads or writes.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

import msgspec

from resources.document_state.artifact_summary import ArtifactSummary
from resources.document_state.links import mark_failed, superseded
from resources.document_state.model import DocStatus, PhaseState, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.transitions import derived


def unlisted(doc: DocStatus, grace: timedelta, now: datetime) -> DocStatus:
    """A listing lacks it. Until a grace period is over it is missing, and stores keep what they hold of it.

    Returns:
        the document itself while it stays missing.
    """
    if not grace:
        return vanished(doc, now)
    # A time ahead of us is of a clock that was wrong then, or ours is now: the period begins again.
    if doc.missing_since is None or doc.missing_since > now:
        return derived(doc, now, presence=Presence.MISSING, missing_since=now)
    return vanished(doc, now) if now - doc.missing_since >= grace else doc


def reappeared(doc: DocStatus, now: datetime) -> DocStatus:
    """It is listed again, as it was, within the grace period: nothing has happened."""
    return derived(doc, now, presence=Presence.PRESENT, missing_since=None)


def vanished(doc: DocStatus, now: datetime) -> DocStatus:
    """Its source no longer has it: it is to be removed from every store."""
    return _leaving(doc, Presence.VANISHED, now)


def deletion_requested(doc: DocStatus, now: datetime) -> DocStatus:
    """A person wants it gone, here and in every store, whatever its source has. Its record must be free."""
    return _leaving(doc, Presence.DELETING, now)


def removal_failed(
    doc: DocStatus,
    gone_from: Collection[str],
    failures: Mapping[str, tuple[Reason, str]],
    now: datetime,
    policy: RetryPolicy,
) -> DocStatus:
    """Some stores could not be rid of it; the claim ends, and it is tried again after a pause.

    Args:
        doc: its record.
        gone_from: stores of which a read has shown that they hold nothing of it any more.
        failures: by store, why it is still there.
        now: the time.
        policy: says how long the pause is.
    """
    attempts = doc.build.attempts + 1
    build = msgspec.structs.replace(doc.build, attempts=attempts, next_attempt_at=policy.next_removal_at(attempts, now))
    links = {slug: link for slug, link in doc.links.items() if slug not in gone_from}
    for slug, (reason, error) in failures.items():
        links[slug] = mark_failed(doc, slug, reason, error, doc.last_run_id)
    return derived(doc, now, build=build, links=links, claim=None)


def removed(doc: DocStatus, gone_from: Collection[str], now: datetime) -> DocStatus:
    """No store that is configured holds it any more. The record stays, with its name, its token and nothing else.

    A link that is left is of a store that is no longer configured: nobody could look whether it holds the document.
    """
    pending = PhaseState(Status.PENDING, now)
    return derived(
        doc,
        now,
        presence=Presence.ERASED if doc.presence is Presence.DELETING else Presence.DELETED,
        links={slug: link for slug, link in doc.links.items() if slug not in gone_from},
        due_in=(),
        claim=None,
        content_version="",
        size=0,
        extraction=pending,
        build=pending,
        corrections=None,
        last_extracted_turn=None,
        **ArtifactSummary().fields(),
    )


def restored(doc: DocStatus, due_in: tuple[str, ...], now: datetime) -> DocStatus:
    """A person wants back what a person had deleted: it is read from its source again."""
    return derived(
        doc,
        now,
        presence=Presence.PRESENT,
        due_in=due_in,
        extraction=PhaseState(Status.PENDING, now),
        links={slug: superseded(link) for slug, link in doc.links.items()},
    )


def _leaving(doc: DocStatus, presence: Presence, now: datetime) -> DocStatus:
    build = msgspec.structs.replace(doc.build, attempts=0, next_attempt_at=None)
    return derived(doc, now, presence=presence, missing_since=None, build=build, claim=None)
