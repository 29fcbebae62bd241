"""Documents as a corpus of a large state has them: one in five incomplete, of realistic size."""

from datetime import UTC, datetime, timedelta

from resources.document_state import links, transitions
from resources.document_state.artifact_summary import ArtifactSummary
from resources.document_state.model import DocStatus
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import RetryPolicy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = RetryPolicy()
# Of ten documents eight are complete, one was never attempted, one failed: for now or for good.
_KINDS = ("complete",) * 8 + ("pending", "failed")


def document(number: int) -> DocStatus:
    """The document of a number, in the state its number gives it."""
    kind = _KINDS[number * 7 % 10]
    doc = discovered(number)
    if kind == "pending":
        return doc
    doc = transitions.claimed(doc, "w", f"{number // 1000:032x}", NOW, extract=True)
    if kind == "failed":
        reason = Reason.SOURCE_UNAVAILABLE if number % 4 else Reason.MALFORMED
        return transitions.extraction_failed(doc, reason, "No answer within 30 seconds.", NOW, POLICY)
    return completed(doc)


def discovered(number: int) -> DocStatus:
    """The document of a number, as a listing has it for the first time."""
    name = f"reports-2026-{number:07d}-quarterly-overview.md-{number * 11400714819323198485 % 2**64:016x}"
    uri = f"corpus:reports/2026/{number:07d}-quarterly-overview.md"
    version = f"18234-{1767225600000000000 + number}-{number + 77}"
    found_at = NOW + timedelta(microseconds=number)
    return transitions.discovered(name, "default", "corpus", uri, version, 18_234, ("default",), found_at)


def completed(doc: DocStatus) -> DocStatus:
    """A claimed document, extracted and built."""
    return built(extracted(doc))


def extracted(doc: DocStatus) -> DocStatus:
    """A claimed document after its extraction. Hashes are as incompressible as real ones."""
    digest = doc.document_id[-16:]
    long = "".join(f"{int(digest, 16) * factor % 2**64:016x}" for factor in (3, 5, 7, 11))
    parts = {"content": digest, "parser": "0123456789ab", "chunker": "1000-0-markdown", "extractor": "local 1"}
    made = ArtifactSummary(
        long, long[:32], long[16:48], "Quarterly overview", "text/markdown", n_chunks=18, n_entries=40, n_chars=18_000
    )
    return transitions.extracted(doc, made, NOW, parts=parts, content_version=doc.content_version, n_corrections=0)


def built(doc: DocStatus) -> DocStatus:
    """An extracted document after its build."""
    parts = {"content": doc.artifact_hash, "embedder": "wordllama 0.4", "store": "duckdb"}
    link = links.mark_ingested(doc, "default", parts, doc.last_run_id, NOW)
    return transitions.built(doc, {"default": link}, NOW, POLICY)
