"""One document's record: the whole truth about it, and the only unit of atomicity."""

from datetime import datetime
from enum import StrEnum

import msgspec

from resources.document_source.document_ids import parent_of, shown_key
from resources.document_state.change import Change
from resources.document_state.reasons import Reason


class Phase(StrEnum):
    """The two halves of a document's way."""

    EXTRACTION = "extraction"  # bytes become chunks and knowledge entries
    BUILD = "build"  # these go into the stores


class Status(StrEnum):
    """Where a document stands in one phase."""

    PENDING = "PENDING"  # work is owed; nobody is on it
    IN_PROGRESS = "IN_PROGRESS"  # a worker has claimed it
    COMPLETED = "COMPLETED"  # done at the recorded fingerprint
    FAILED = "FAILED"  # tried and not done; the reason says whether trying again can help
    SKIPPED = "SKIPPED"  # deliberately not done; the reason says why


SETTLED = frozenset({Status.COMPLETED, Status.SKIPPED})


class Presence(StrEnum):
    """Whether the source still has the document."""

    PRESENT = "present"
    MISSING = "missing"  # listed no more; left as it is until the grace period is over
    VANISHED = "vanished"  # gone from its source, not yet out of every store
    DELETING = "deleting"  # a person asked for its removal
    DELETED = "deleted"  # gone from its source and out of every store; it comes back with its object
    ERASED = "erased"  # a person had it removed; whatever its source has, it stays away until a person restores it


LISTED = frozenset({Presence.PRESENT, Presence.MISSING})  # what stores hold of it is to stay
GONE = frozenset({Presence.DELETED, Presence.ERASED})  # nothing is left but the record
UNWANTED = frozenset({Presence.DELETING, Presence.ERASED})  # a person's word, which no listing overrides


class LinkState(StrEnum):
    """What a store holds of a document."""

    INGESTED = "Ingested"  # the current content
    STALE = "Stale"  # an older content or configuration
    FAILED = "Failed"  # the last write did not succeed


class Lifecycle(StrEnum):
    """The whole record in one word, for people."""

    UPLOADED = "Uploaded"
    PARSED = "Parsed"
    CHUNKED = "Chunked"
    INGESTED = "Ingested"
    STALE = "Stale"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    GONE = "Gone"


class PhaseState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One phase of a document.

    Attributes:
        status: where it stands.
        changed_at: when the status changed.
        reason: why it is FAILED or SKIPPED, or held back.
        error: one sentence of detail, cut.
        attempts: failed attempts since the content changed or a person asked again.
        next_attempt_at: when a phase that is FAILED, or held back, is tried again by itself; None: not by itself, or,
            if it is PENDING, at once.
        parts: the fingerprint of the work that completed, as named short hashes.
        run_id: the run that brought the status about.
    """

    status: Status
    changed_at: datetime
    reason: Reason | None = None
    error: str = ""
    attempts: int = 0
    next_attempt_at: datetime | None = None
    parts: dict[str, str] = {}
    run_id: str = ""

    @property
    def waits_until(self) -> datetime | None:
        """When it is tried again, if it failed or is held back: one owed anew may still carry an older pause."""
        return self.next_attempt_at if self.reason is not None else None


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Who works on the document. `token` grows with every claim and fences writes of earlier ones."""

    worker_id: str
    token: int
    run_id: str


class DocumentStoreLink(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One (document, store) pair that was built, or tried; `link_id` gives its id.

    `on_request`: it is stale by configuration or a person's correction alone, so it is rebuilt when somebody asks, and
    never by itself.
    """

    store: str
    state: LinkState
    chunkset_hash: str = ""
    parts: dict[str, str] = {}
    last_push_at: datetime | None = None
    last_run_id: str = ""
    reason: Reason | None = None
    error_message: str = ""
    on_request: bool = False


class Corrections(msgspec.Struct, frozen=True, gc=False):
    """What people corrected in a document's chunks: how many corrections its artifact holds, void ones included.

    `by` and `at` are of the last change, which may have taken corrections back.
    """

    n: int
    by: str
    at: datetime


class DocStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A document's record.

    Attributes:
        document_id: its partition key.
        source_uri: `<source name>:<percent-encoded key>`; never changes.
        content_version: what the source said of the content last seen (size, times), not its hash.
        missing_since: when a listing lacked it first, while it is MISSING.
        due_in: the stores it belongs into; its build is complete when none of them is owed content.
        artifact: key of what extraction produced last; stays readable while newer content is being worked on.
        artifact_hash: hash over chunk set and entries of that artifact.
        corrections: None if nobody has corrected a chunk of it.
        parser: library and version that read it.
        n_pages, n_empty_pages: its pages or slides, 0 for formats without, and how many of them gave no text.
        token: the last fencing token given out.
        last_run_id: the run that changed it last.
        last_extracted_turn: up to which turn, counted from 0, a conversation is extracted into `artifact`; None: it is
            to be extracted from its first turn on.
        spent_micro_usd: what models were paid for it so far, in millionths of a dollar.
        history: its last changes, the oldest first.
        version, write_id: the state of the record this copy was read at; assigned by the state store, never stored
            inside the value.
    """

    document_id: str
    org_id: str
    source: str
    source_uri: str
    content_version: str
    size: int
    created_at: datetime
    updated_at: datetime
    extraction: PhaseState
    build: PhaseState
    presence: Presence = Presence.PRESENT
    missing_since: datetime | None = None
    due_in: tuple[str, ...] = ()
    title: str = ""
    media_type: str = ""
    artifact: str = ""
    artifact_hash: str = ""
    chunkset_hash: str = ""
    n_chunks: int = 0
    n_entries: int = 0
    n_chars: int = 0
    parser: str = ""
    n_pages: int = 0
    n_empty_pages: int = 0
    warnings: tuple[str, ...] = ()
    corrections: Corrections | None = None
    links: dict[str, DocumentStoreLink] = {}
    claim: Claim | None = None
    token: int = 0
    last_run_id: str = ""
    last_extracted_turn: int | None = None
    spent_micro_usd: int = 0
    history: tuple[Change, ...] = ()
    version: int = 0
    write_id: str = ""

    def phase(self, phase: Phase) -> PhaseState:
        """The state of one phase."""
        return self.extraction if phase is Phase.EXTRACTION else self.build

    @property
    def filename(self) -> str:
        """The last part of its key, as a person knows it."""
        return shown_key(self.source_uri).rsplit("/", 1)[-1]

    @property
    def parent(self) -> str:
        """The source URI of the archive or mail it lies in; "" if it lies in none."""
        return parent_of(self.source_uri)

    @property
    def lifecycle(self) -> Lifecycle:
        """Any link Failed, else any Stale, else any Ingested, else what extraction says.

        Links of stores the document is no longer due in do not count.
        """
        if self.presence not in LISTED:
            return Lifecycle.GONE
        states = {link.state for slug, link in self.links.items() if slug in self.due_in}
        for state in (LinkState.FAILED, LinkState.STALE, LinkState.INGESTED):
            if state in states:
                return Lifecycle(state.value)
        return _LIFECYCLE_OF_EXTRACTION[self.extraction.status]


def link_id(document_id: str, store: str) -> str:
    """The id of a (document, store) pair's link, whether there is one or not."""
    return f"{document_id}:{store}"


def is_partition(presence: Presence, extraction: Status) -> bool:
    """Whether a document is a partition: "missing" in the UI shall mean that it is missing."""
    return presence not in GONE and extraction is not Status.SKIPPED


_LIFECYCLE_OF_EXTRACTION = {
    Status.PENDING: Lifecycle.UPLOADED,
    Status.IN_PROGRESS: Lifecycle.PARSED,
    Status.COMPLETED: Lifecycle.CHUNKED,
    Status.FAILED: Lifecycle.FAILED,
    Status.SKIPPED: Lifecycle.SKIPPED,
}
