"""The changes a document's record makes on its way into the stores, and the one table of what may follow what.

What it makes on its way out stands in `removals`. Each function takes a record and gives the next one; nothing here
reads or writes. Build status is never set: it is derived from the links whenever one of them, the extraction or the
claim changes.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from resources.document_state.artifact_summary import ArtifactSummary
from resources.document_state.history import noted
from resources.document_state.links import (
    ERROR_CHARACTERS,
    compared,
    left_behind,
    mark_stale,
    owes_content,
    source_changed,
    superseded,
)
from resources.document_state.model import (
    GONE,
    SETTLED,
    Claim,
    DocStatus,
    DocumentStoreLink,
    LinkState,
    Phase,
    PhaseState,
    Presence,
    Status,
)
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import RetryPolicy

# Sets and tuples, because each record that is written is asked, and an enum's own name takes as long as the question.
_LEFT_ALONE = GONE | {Presence.MISSING}
_GOING = frozenset({Presence.VANISHED, Presence.DELETING})
_UNDECIDED = _GOING | {Presence.MISSING}
_OWED = frozenset({Status.PENDING, Status.FAILED})
_PHASES = (Phase.EXTRACTION, Phase.BUILD)

# Work that waits for nothing is due this much before the time it was written at: clocks of several machines differ, and
# clocks are set back, and neither may hide it.
CLOCK_DOUBT = timedelta(days=1)

# The part that the fingerprint of an extraction has which another tool did; it has no other.
IMPORTED_PART = "checkpoint"

# What may follow what, for both phases. Staying is always allowed. COMPLETED cannot turn FAILED without somebody
# having claimed it in between, and nothing completes that nobody worked on.
ALLOWED: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.IN_PROGRESS, Status.SKIPPED}),
    Status.IN_PROGRESS: frozenset({Status.PENDING, Status.COMPLETED, Status.FAILED, Status.SKIPPED}),
    Status.COMPLETED: frozenset({Status.PENDING, Status.IN_PROGRESS}),
    Status.FAILED: frozenset({Status.PENDING, Status.IN_PROGRESS}),
    Status.SKIPPED: frozenset({Status.PENDING, Status.IN_PROGRESS}),
}


class IllegalTransitionError(ValueError):
    """A change the table does not allow. Nothing was written."""

    def __init__(self, document_id: str, phase: Phase, old: Status, new: Status) -> None:
        allowed = ", ".join(sorted(ALLOWED[old]))
        super().__init__(f"Document '{document_id}': {phase} cannot go from {old} to {new}. Allowed: {allowed}.")
        self.document_id = document_id


def check_transition(old: DocStatus | None, new: DocStatus) -> None:
    """Raise IllegalTransitionError unless `new` may follow `old`. A record may be created in any state."""
    if old is None:
        return
    ways = (old.extraction.status, new.extraction.status), (old.build.status, new.build.status)
    for phase, (before, after) in zip(_PHASES, ways, strict=True):
        if before is not after and after not in ALLOWED[before]:
            raise IllegalTransitionError(new.document_id, phase, before, after)


def discovered(
    document_id: str,
    org_id: str,
    source: str,
    source_uri: str,
    content_version: str,
    size: int,
    due_in: tuple[str, ...],
    now: datetime,
) -> DocStatus:
    """A document nobody knew."""
    pending = PhaseState(Status.PENDING, now)
    return DocStatus(
        document_id, org_id, source, source_uri, content_version, size, now, now, pending, pending, due_in=due_in
    )


def content_changed(
    doc: DocStatus, content_version: str, size: int, due_in: tuple[str, ...], now: datetime
) -> DocStatus:
    """Its source has other content, or has it again: extract anew; what stores hold is stale until rebuilt."""
    return derived(
        doc,
        now,
        presence=Presence.PRESENT,
        missing_since=None,
        content_version=content_version,
        size=size,
        due_in=due_in,
        extraction=PhaseState(Status.PENDING, now, parts=doc.extraction.parts),
        build=msgspec.structs.replace(doc.build, attempts=0, next_attempt_at=None),
        links={slug: source_changed(doc, link) for slug, link in doc.links.items()},
        claim=None,
    )


def claimed(
    doc: DocStatus, worker_id: str, run_id: str, now: datetime, *, extract: bool, renew: Collection[str] = ()
) -> DocStatus:
    """A worker takes it.

    Args:
        doc: its record.
        worker_id: which worker.
        run_id: in which run.
        now: the time.
        extract: the extraction is to be done, else only the build.
        renew: stores that are to hold it anew because somebody asked: that is owed from now on, so that a worker's
            death does not forget what was asked.
    """
    token = doc.token + 1
    extraction = doc.extraction
    if extract:
        extraction = msgspec.structs.replace(
            extraction, status=Status.IN_PROGRESS, changed_at=now, reason=None, error="", next_attempt_at=None
        )
    links = doc.links
    if renew:
        links = {
            slug: mark_stale(link) if slug in renew and link.state is not LinkState.FAILED else link
            for slug, link in links.items()
        }
    claim = Claim(worker_id, token, run_id)
    return derived(doc, now, extraction=extraction, links=links, claim=claim, token=token, last_run_id=run_id)


def outran(doc: DocStatus, held_token: int, now: datetime) -> DocStatus:
    """Its worker keeps it, under a token larger than its own and than `held_token`, which a store remembers of it.

    A store may be ahead of a state that was lost or restored. This says so only if it is written in the place of the
    record that was claimed: otherwise the larger token is another worker's.
    """
    token = max(doc.token, held_token) + 1
    claim = msgspec.structs.replace(doc.claim, token=token) if doc.claim is not None else None
    return derived(doc, now, claim=claim, token=token)


def released(doc: DocStatus, now: datetime) -> DocStatus:
    """The worker gives it back undone (cancelled, or dead): PENDING again, which costs no attempt."""
    extraction = doc.extraction
    if extraction.status is Status.IN_PROGRESS:
        extraction = msgspec.structs.replace(extraction, status=Status.PENDING, changed_at=now)
    return derived(doc, now, extraction=extraction, claim=None)


def retry_requested(doc: DocStatus, now: datetime) -> DocStatus:
    """A person asks for another try: attempts start again, whatever the reason was."""
    extraction, build = doc.extraction, doc.build
    if extraction.status in (Status.FAILED, Status.SKIPPED):
        extraction = PhaseState(Status.PENDING, now, parts=extraction.parts)
    links = {slug: (mark_stale(link) if link.state is LinkState.FAILED else link) for slug, link in doc.links.items()}
    build = msgspec.structs.replace(build, attempts=0, next_attempt_at=None)
    return derived(doc, now, extraction=extraction, build=build, links=links)


def extracted(
    doc: DocStatus,
    made: ArtifactSummary,
    now: datetime,
    *,
    parts: dict[str, str],
    content_version: str,
    n_corrections: int,
    last_turn: int | None = None,
    is_whole: bool = True,
    building: Collection[str] | None = None,
) -> DocStatus:
    """Extraction is done; the claim stays for the build.

    Args:
        doc: its record, claimed.
        made: the artifact.
        now: the time.
        parts: the fingerprint of the extraction.
        content_version: what the source said of the content that was read.
        n_corrections: how many corrections the artifact holds.
        last_turn: up to which turn a conversation is extracted.
        is_whole: it is extracted to its end; otherwise its extraction goes on under the same claim.
        building: the stores that this worker builds; None: all.
    """
    links = doc.links
    if made.artifact_hash != doc.artifact_hash:
        same_source = parts.get("content") == doc.extraction.parts.get("content")
        links = {
            slug: superseded(link) if building is None or slug in building else left_behind(link, same_source)
            for slug, link in links.items()
        }
    status = Status.COMPLETED if is_whole else Status.IN_PROGRESS
    corrections = doc.corrections and msgspec.structs.replace(doc.corrections, n=n_corrections)
    return derived(
        doc,
        now,
        content_version=content_version,
        corrections=corrections,
        links=links,
        last_extracted_turn=last_turn,
        extraction=PhaseState(status, now, parts=parts, run_id=doc.last_run_id),
        **made.fields(),
    )


def extracted_elsewhere(doc: DocStatus, checkpoint: str, n_nodes: int, now: datetime) -> DocStatus:
    """Another tool has extracted it: it counts as done, and is due in no store, for there is nothing here to build.

    The claim stays until it is released. New content, or asking for a store by name, has it extracted here.
    """
    warning = f"Extracted by another tool (checkpoint '{checkpoint}'); its chunks are not here."
    done = PhaseState(Status.COMPLETED, now, parts={IMPORTED_PART: checkpoint}, run_id=doc.last_run_id)
    return derived(doc, now, extraction=done, due_in=(), n_chunks=n_nodes, warnings=(warning,))


def artifact_lost(doc: DocStatus, now: datetime) -> DocStatus:
    """What extraction produced is gone: whoever has claimed it for the build extracts it again."""
    extraction = PhaseState(Status.IN_PROGRESS, now, attempts=doc.extraction.attempts, parts=doc.extraction.parts)
    return derived(doc, now, extraction=extraction, artifact="")


def extracted_as_before(doc: DocStatus, now: datetime, content_version: str) -> DocStatus:
    """It was read again, and neither its content nor the configuration differs from the last extraction."""
    completed = PhaseState(Status.COMPLETED, now, parts=doc.extraction.parts, run_id=doc.last_run_id)
    return derived(doc, now, content_version=content_version, extraction=completed)


def extraction_failed(doc: DocStatus, reason: Reason, error: str, now: datetime, policy: RetryPolicy) -> DocStatus:
    """Extraction was tried and did not succeed; the claim ends."""
    attempts = doc.extraction.attempts + 1
    failed = PhaseState(
        Status.FAILED,
        now,
        reason,
        error[:ERROR_CHARACTERS],
        attempts,
        policy.next_attempt_at(reason, attempts, now),
        doc.extraction.parts,
        doc.last_run_id,
    )
    return derived(doc, now, extraction=failed, claim=None)


def held_back(doc: DocStatus, reason: Reason, error: str, now: datetime, until: datetime) -> DocStatus:
    """It was not extracted, and that is no failure: still PENDING, due again at `until`; the claim ends."""
    pending = PhaseState(
        Status.PENDING, now, reason, error[:ERROR_CHARACTERS], next_attempt_at=until, parts=doc.extraction.parts
    )
    return derived(doc, now, extraction=pending, claim=None)


def extraction_skipped(doc: DocStatus, reason: Reason, error: str, now: datetime) -> DocStatus:
    """The document is deliberately not extracted; the claim ends."""
    skipped = PhaseState(
        Status.SKIPPED, now, reason, error[:ERROR_CHARACTERS], parts=doc.extraction.parts, run_id=doc.last_run_id
    )
    return derived(doc, now, extraction=skipped, claim=None)


def configuration_compared(doc: DocStatus, is_current: Mapping[str, bool], now: datetime) -> DocStatus:
    """Mark what stores hold by an older configuration as stale, and unmark it if that configuration is back.

    Changes no status: such work is nobody's before somebody asks. What is stale by content, or failed, stays so.

    Args:
        doc: its record, free.
        is_current: for each configured store the document is in, whether that was made with today's configuration.
        now: the time.

    Returns:
        The next record, or `doc` itself if nothing is to be marked.
    """
    links = {slug: compared(doc, link, is_current.get(slug)) for slug, link in doc.links.items()}
    return doc if links == doc.links else derived(doc, now, links=links)


def built(doc: DocStatus, links: dict[str, DocumentStoreLink], now: datetime, policy: RetryPolicy) -> DocStatus:
    """The build ended with these links renewed; the claim ends."""
    build = doc.build
    known = {**doc.links, **links}
    failed = [known[slug] for slug in doc.due_in if slug in known and known[slug].state is LinkState.FAILED]
    if any(link.state is LinkState.FAILED for link in links.values()):
        attempts = build.attempts + 1
        build = msgspec.structs.replace(
            build, attempts=attempts, next_attempt_at=_next_attempt_at(failed, attempts, now, policy)
        )
    elif not failed:
        build = msgspec.structs.replace(build, attempts=0, next_attempt_at=None)
    return derived(doc, now, links=known, build=build, claim=None)


def due_at(doc: DocStatus) -> datetime | None:
    """When the record wants a worker; None: not by itself."""
    if doc.claim is not None or doc.presence in _LEFT_ALONE:
        return None
    if doc.presence in _GOING:
        return doc.build.next_attempt_at or doc.updated_at - CLOCK_DOUBT
    for phase in (doc.extraction, doc.build):
        if phase.status in _OWED:
            return phase.waits_until or (phase.changed_at - CLOCK_DOUBT if phase.status is Status.PENDING else None)
    return None


def waits_no_longer(doc: DocStatus, now: datetime) -> DocStatus:
    """It was to wait for a time that no clock which is right could have given: it is due now."""
    extraction, build = (
        msgspec.structs.replace(
            phase,
            changed_at=min(phase.changed_at, now),
            next_attempt_at=None if phase.next_attempt_at is None else min(phase.next_attempt_at, now),
        )
        for phase in (doc.extraction, doc.build)
    )
    return derived(doc, now, extraction=extraction, build=build)


def is_open(doc: DocStatus) -> bool:
    """Whether something is still to become of it: work, a removal, or a person's look at a failure."""
    if doc.claim is not None:
        return True
    if doc.extraction.status in SETTLED and doc.build.status in SETTLED:
        return doc.presence in _UNDECIDED
    return doc.presence not in GONE


def _next_attempt_at(
    failed: Sequence[DocumentStoreLink], attempts: int, now: datetime, policy: RetryPolicy
) -> datetime | None:
    """The build is tried again if that can help at one of the stores, whatever the others need."""
    times = [policy.next_attempt_at(link.reason or Reason.STORE_UNAVAILABLE, attempts, now) for link in failed]
    return min((time for time in times if time is not None), default=None)


def derived(doc: DocStatus, now: datetime, **changes: object) -> DocStatus:
    """The record with these fields changed, and the build phase that follows from them."""
    changed = msgspec.structs.replace(doc, updated_at=now, **changes)
    status, reason, error = derived_build(changed)
    build = changed.build
    if (build.status, build.reason, build.error) != (status, reason, error):
        moved_at = now if build.status is not status else build.changed_at
        build = msgspec.structs.replace(build, status=status, reason=reason, error=error, changed_at=moved_at)
        changed = msgspec.structs.replace(changed, build=build)
    history = noted(doc, changed, now)
    return changed if history is changed.history else msgspec.structs.replace(changed, history=history)


def derived_build(doc: DocStatus) -> tuple[Status, Reason | None, str]:
    """Status, reason and error of the build, as extraction, claim and links imply them."""
    extraction = doc.extraction.status
    if extraction is Status.SKIPPED:
        return Status.SKIPPED, doc.extraction.reason, ""
    if extraction is not Status.COMPLETED:
        return Status.PENDING, None, ""
    if doc.claim is not None:
        return Status.IN_PROGRESS, None, ""
    links = [doc.links.get(slug) for slug in doc.due_in]
    for link in links:
        if link is not None and link.state is LinkState.FAILED:
            return Status.FAILED, link.reason, link.error_message
    if all(link is not None and not owes_content(doc, link) for link in links):
        return Status.COMPLETED, None, ""
    return Status.PENDING, None, ""
