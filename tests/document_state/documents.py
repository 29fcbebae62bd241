"""Documents in every state, made only by the transitions that lead there."""

from datetime import UTC, datetime, timedelta

import msgspec

from resources.document_state import correcting, links, removals, transitions
from resources.document_state.artifact_summary import ArtifactSummary
from resources.document_state.model import Corrections, DocStatus, DocumentStoreLink
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import RetryPolicy

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
SECOND = timedelta(seconds=1)
POLICY = RetryPolicy(max_attempts=3, first_pause=timedelta(seconds=10), factor=2, longest_pause=timedelta(seconds=60))
MAY_HEAL = Reason.SOURCE_UNAVAILABLE
PARTS = {"content": "c" * 32, "parser": "p" * 12, "chunker": "markdown 1 size=1000 overlap=0", "extractor": "none 1"}


def new(document_id: str = "a", due_in: tuple[str, ...] = ("s",), now: datetime = NOW) -> DocStatus:
    """A document nobody has worked on."""
    return transitions.discovered(document_id, "default", "docs", f"docs:{document_id}.md", "v1", 10, due_in, now)


def claimed(doc: DocStatus, *, extract: bool = True, worker: str = "w1", now: datetime = NOW) -> DocStatus:
    """In a worker's hands."""
    return transitions.claimed(doc, worker, f"run of {worker}", now, extract=extract)


def made(content: str) -> ArtifactSummary:
    """What is extracted from a content."""
    return ArtifactSummary(
        artifact=f"artifact of {content}",
        artifact_hash=content,
        chunkset_hash=f"chunks of {content}",
        title="Title",
        media_type="text/markdown",
        n_chunks=3,
        n_entries=5,
        n_chars=100,
    )


def extracted(
    doc: DocStatus, content: str = "h1", now: datetime = NOW, building: tuple[str, ...] | None = None
) -> DocStatus:
    """Extracted, still claimed for the build."""
    return transitions.extracted(
        doc,
        made(content),
        now,
        parts=PARTS | {"content": content},
        content_version=doc.content_version,
        n_corrections=0 if doc.corrections is None else doc.corrections.n,
        building=building,
    )


def ingested(doc: DocStatus, store: str = "s", now: datetime = NOW) -> DocumentStoreLink:
    """A link to a store that holds the document's current content."""
    return links.mark_ingested(doc, store, {"content": doc.artifact_hash, "embedder": "hash 1"}, "run", now)


def failed_link(doc: DocStatus, store: str = "s", reason: Reason = Reason.STORE_UNAVAILABLE) -> DocumentStoreLink:
    """A link to a store that could not be written."""
    return links.mark_failed(doc, store, reason, f"{store} said no", "run")


def built(doc: DocStatus, *links: DocumentStoreLink, now: datetime = NOW) -> DocStatus:
    """The build ended with these links."""
    return transitions.built(doc, {link.store: link for link in links}, now, POLICY)


def complete(document_id: str = "a", due_in: tuple[str, ...] = ("s",), content: str = "h1") -> DocStatus:
    """Extracted and standing in every store."""
    doc = extracted(claimed(new(document_id, due_in)), content)
    return built(doc, *(ingested(doc, store) for store in due_in))


def extraction_failed(doc: DocStatus, reason: Reason, now: datetime = NOW) -> DocStatus:
    """Tried and not done."""
    return transitions.extraction_failed(claimed(doc), reason, "detail", now, POLICY)


def quarantined(doc: DocStatus, reason: Reason = Reason.SOURCE_UNAVAILABLE) -> DocStatus:
    """Failed as often as the policy tries."""
    for _ in range(POLICY.max_attempts):
        doc = extraction_failed(doc, reason)
    return doc


def skipped(doc: DocStatus, reason: Reason = Reason.UNSUPPORTED_TYPE) -> DocStatus:
    """Deliberately not extracted."""
    return transitions.extraction_skipped(claimed(doc), reason, "detail", NOW)


def build_failed(reason: Reason, due_in: tuple[str, ...] = ("s",)) -> DocStatus:
    """Extracted, and its first store could not be written."""
    doc = extracted(claimed(new(due_in=due_in)))
    return built(doc, failed_link(doc, due_in[0], reason))


def vanished(doc: DocStatus) -> DocStatus:
    """Gone from its source."""
    return removals.vanished(doc, NOW)


def deleted(doc: DocStatus) -> DocStatus:
    """Gone from its source and every store."""
    return removals.removed(claimed(vanished(doc), extract=False), doc.links, NOW)


def content_changed(doc: DocStatus, version: str = "v2", now: datetime = NOW) -> DocStatus:
    """Its source has other content."""
    return transitions.content_changed(doc, version, 11, doc.due_in, now)


def corrected(
    doc: DocStatus, content: str = "h1 corrected", n: int = 1, now: datetime = NOW, *, at_configuration: bool = True
) -> DocStatus:
    """A person corrected chunks of it; `n` corrections are in it now."""
    return correcting.corrected(
        doc if doc.claim is not None else claimed(doc, extract=False),
        now,
        artifact=f"artifact of {content}",
        artifact_hash=content,
        chunkset_hash=f"chunks of {content}",
        warnings=(),
        corrections=Corrections(n, "ann", now),
        is_current=dict.fromkeys(doc.links, at_configuration),
    )


def with_stamp(doc: DocStatus, version: int = 1, write_id: str = "w") -> DocStatus:
    """As if read from a state store."""
    return msgspec.structs.replace(doc, version=version, write_id=write_id)
