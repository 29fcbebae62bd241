"""States in plain words, each with a shape and a kind that the style sheet gives a colour: never a colour alone."""

from typing import NamedTuple

from ingest_assets.api.document_shapes import DocumentShape, DocumentStoreShape
from ingest_assets.requests.asking import Kind
from ingest_assets.upkeep.staleness import WHY_GONE, Verdict
from resources.document_state.ingest_jobs import Errand, IngestJob, JobStatus, Outcome
from resources.document_state.model import GONE, Lifecycle, LinkState, Presence, Status
from resources.document_state.take_up import Mode


class Badge(NamedTuple):
    """A state as it is shown: its word, the shape before it, and its kind for the style sheet."""

    word: str
    shape: str
    kind: str


_GOOD, _STALE, _BAD = ("●", "good"), ("◐", "stale"), ("▲", "bad")
_OPEN, _BUSY, _NONE, _HELD = ("○", "open"), ("◔", "busy"), ("◇", "none"), ("■", "bad")

_OF_GONE = {Presence.DELETED: Badge("Gone", *_NONE), Presence.ERASED: Badge("Deleted", *_NONE)}
_OF_VERDICTS = {
    Verdict.CURRENT: Badge("Ingested", *_GOOD),
    Verdict.STALE: Badge("Stale", *_STALE),
    Verdict.PENDING: Badge("Pending", *_OPEN),
    Verdict.IN_PROGRESS: Badge("In progress", *_BUSY),
    Verdict.FAILED: Badge("Failed", *_BAD),
    Verdict.SKIPPED: Badge("Skipped", *_NONE),
    Verdict.MISSING: Badge("Not built", *_NONE),
    Verdict.GONE: Badge("Gone", *_NONE),
}
_OF_STATES = {
    LinkState.INGESTED: Badge("Ingested", *_GOOD),
    LinkState.STALE: Badge("Stale", *_STALE),
    LinkState.FAILED: Badge("Failed", *_BAD),
}
_OF_STATUSES = {
    Status.PENDING: Badge("Pending", *_OPEN),
    Status.IN_PROGRESS: Badge("In progress", *_BUSY),
    Status.COMPLETED: Badge("Completed", *_GOOD),
    Status.FAILED: Badge("Failed", *_BAD),
    Status.SKIPPED: Badge("Skipped", *_NONE),
}
_OF_LIFECYCLES = {
    Lifecycle.UPLOADED: Badge("Uploaded", *_OPEN),
    Lifecycle.PARSED: Badge("Parsed", *_BUSY),
    Lifecycle.CHUNKED: Badge("Chunked", *_OPEN),
    Lifecycle.INGESTED: Badge("Ingested", *_GOOD),
    Lifecycle.STALE: Badge("Stale", *_STALE),
    Lifecycle.FAILED: Badge("Failed", *_BAD),
    Lifecycle.SKIPPED: Badge("Skipped", *_NONE),
    Lifecycle.GONE: Badge("Gone", *_NONE),
}
_OF_JOBS = {
    JobStatus.QUEUED: Badge("Queued", *_OPEN),
    JobStatus.RUNNING: Badge("Running", *_BUSY),
    JobStatus.SUCCEEDED: Badge("Succeeded", *_GOOD),
    JobStatus.PARTIAL: Badge("Partial", *_STALE),
    JobStatus.FAILED: Badge("Failed", *_BAD),
    JobStatus.BLOCKED: Badge("Blocked", *_HELD),
}
_OF_OUTCOMES = {
    Outcome.SUCCEEDED: Badge("Succeeded", *_GOOD),
    Outcome.FAILED: Badge("Failed", *_BAD),
    Outcome.SKIPPED: Badge("Skipped", *_NONE),
    Outcome.PENDING: Badge("Given back", *_OPEN),
    Outcome.REMOVED: Badge("Removed", *_GOOD),
    Outcome.UNCHANGED: Badge("Unchanged", *_NONE),
    Outcome.BUSY: Badge("Elsewhere", *_BUSY),
}
_OF_ERRANDS = {
    Errand.NONE: "",
    Errand.LISTING: "listing of the sources",
    Errand.INGESTING: "listing of the sources, then what is due",
    Errand.RESTORING: "restoring of deleted documents",
}
_OF_ASKED = {
    Mode.INCREMENTAL: "what is due",
    Mode.RESUME: "what is due or was left",
    Mode.RETRY_FAILED: "failed documents",
    Kind.STALE: "stale documents",
    Kind.FAILED: "failed documents",
    Kind.MISSING: "documents missing in a store",
    Kind.NAMED: "named documents",
    Kind.CHOSEN: "chosen documents",
    Kind.RENEWED: "named documents, brought up to date",
    Kind.REWRITE: "stores written anew",
    Kind.REPORT: "reports to Dagster",
}
_OF_PARTS = {
    "content": "chunks",
    "parser": "parser",
    "chunker": "chunking",
    "extractor": "extractor",
    "prompt": "prompt",
    "model": "model",
    "embedder": "embedder",
    "store": "kind of store",
}


def of_store(store: DocumentStoreShape) -> Badge:
    """How a document stands in a store; of one that is no longer configured, what it held last."""
    if store.verdict:
        return _OF_VERDICTS[Verdict(store.verdict)]
    return of_state(store.state) if store.state else _OF_VERDICTS[Verdict.MISSING]


def of_state(state: str) -> Badge:
    """A state of a link."""
    return _OF_STATES[LinkState(state)]


def of_status(status: str) -> Badge:
    """A status of a phase."""
    return _OF_STATUSES[Status(status)]


def of_extraction(doc: DocumentShape) -> Badge:
    """A document's extraction; one that is gone owes none, whatever its status is called."""
    return _OF_GONE.get(Presence(doc.presence)) or of_status(doc.extraction.status)


def why_gone(doc: DocumentShape) -> str:
    """Why nothing is left of a document but its record; "" if it is not so."""
    presence = Presence(doc.presence)
    return WHY_GONE[presence] if presence in GONE else ""


def of_lifecycle(lifecycle: str) -> Badge:
    """A whole document."""
    return _OF_LIFECYCLES[Lifecycle(lifecycle)]


def of_job(status: str) -> Badge:
    """A job."""
    return _OF_JOBS[JobStatus(status)]


def of_outcome(outcome: str) -> Badge:
    """What a job made of a document."""
    return _OF_OUTCOMES[Outcome(outcome)]


def of_request(job: IngestJob) -> str:
    """What a job was asked for."""
    if job.force:
        return "every document again"
    return _OF_ERRANDS[job.errand] or _OF_ASKED[Kind(job.asked) if job.asked else Mode(job.mode)]


def of_part(part: str) -> str:
    """A part of a fingerprint."""
    return _OF_PARTS.get(part, part)


def of_reason(reason: str) -> str:
    """A reason: `image_only` as "image only"."""
    return reason.replace("_", " ")


def of_change(state: str) -> Badge | None:
    """A state in a history, whatever it is a state of; None: words of its own say it."""
    for kind, badges in ((LinkState, _OF_STATES), (Status, _OF_STATUSES)):
        if state in list(kind):
            return badges[kind(state)]  # type: ignore[index]
    return None
