"""The first phase for a group of documents: read, parse, chunk, extract, keep the artifact."""

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ingest_assets.engine.entry_finding import Bill, Chunked, EntryFinder, Finding
from ingest_assets.engine.progress import Progress
from ingest_assets.engine.read_ahead import ReadAhead
from ingest_assets.parsing import ParsedDocument, ParseFailure, ParserPool
from resources.artifact_store.artifact import Artifact, chunks_of, chunkset_hash
from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.corrections import carried_over, with_lost_corrections
from resources.document_source.document_source import DocumentSource, ReadError
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.model import DocStatus, Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import IMPORTED_PART

_logger = logging.getLogger(__name__)


class Extraction(msgspec.Struct):
    """What came of one document: an artifact, the news that nothing changed, or a reason."""

    doc: DocStatus
    parts: dict[str, str]
    content_version: str = ""
    artifact: Artifact | None = None
    artifact_key: str = ""
    unchanged: bool = False
    reason: Reason | None = None
    error: str = ""
    n_chars: int = 0
    n_pages: int = 0
    n_empty_pages: int = 0
    seconds: float = 0.0
    bill: Bill = Bill()


class BegunExtraction:
    """A group that is being read and parsed while somebody else does something else."""

    def __init__(self, docs: Sequence[DocStatus]) -> None:
        self.docs = docs
        self.extractions: dict[str, Extraction] = {}
        self.outcomes: list[tuple[str, ParsedDocument | ParseFailure]] = []
        self.parsed: asyncio.Future[None] | None = None


class ExtractionStage:
    """Extracts documents; knows nothing of claims and records."""

    def __init__(
        self,
        sources: Mapping[str, DocumentSource],
        pool: ParserPool,
        entries: EntryFinder,
        artifacts: ArtifactStore,
        config_parts: Mapping[str, str],
        max_file_bytes: int,
        progress: Progress,
    ) -> None:
        self._reading = ReadAhead(sources, max_file_bytes)
        self._pool = pool
        self._entries = entries
        self._artifacts = artifacts
        self._config_parts = dict(config_parts)
        self._progress = progress

    def is_outdated(self, doc: DocStatus) -> bool:
        """Whether a document was extracted, and with another configuration than today's."""
        parts = doc.extraction.parts
        if doc.extraction.status is not Status.COMPLETED or IMPORTED_PART in parts:
            return False
        return {name: value for name, value in parts.items() if name != "content"} != self._config_parts

    def begin(self, docs: Sequence[DocStatus], *, force: bool) -> "BegunExtraction":
        """Start reading and parsing a group of claimed documents, in threads and child processes of their own.

        Args:
            docs: claimed documents.
            force: extract although content and configuration are as at the last extraction.
        """
        self._progress.enters(JobStage.PARSING)
        begun = BegunExtraction(docs)
        begun.parsed = asyncio.get_running_loop().run_in_executor(None, self._parse, begun, force)
        return begun

    async def finish(self, begun: "BegunExtraction") -> list[Extraction]:
        """Chunks and entries of a begun group; one result for each document, in order.

        Artifacts are durable when this returns.
        """
        if begun.parsed is not None:
            await begun.parsed
        self._progress.enters(JobStage.FILTERING)
        previous = await self._corrected_before(begun)
        parsed: dict[str, ParsedDocument] = {}
        for document_id, outcome in begun.outcomes:
            extraction = begun.extractions[document_id]
            extraction.seconds = outcome.seconds
            if isinstance(outcome, ParseFailure):
                extraction.reason, extraction.error = outcome.reason, outcome.detail
            else:
                parsed[document_id] = outcome
        batch = [
            Chunked(document_id, begun.extractions[document_id].doc.org_id, chunks_of(document_id, outcome.pieces))
            for document_id, outcome in parsed.items()
        ]
        findings = await self._entries.find(batch) if batch else []
        for chunked, finding in zip(batch, findings, strict=True):
            extraction = begun.extractions[chunked.document_id]
            _take(extraction, parsed[chunked.document_id], chunked, finding)
            if extraction.artifact is not None:
                extraction.artifact = _with_corrections(extraction.doc, extraction.artifact, previous)
        done = [begun.extractions[doc.document_id] for doc in begun.docs]
        fresh = [extraction for extraction in done if extraction.artifact is not None]
        self._progress.enters(JobStage.PERSISTING)
        # In a thread: a bucket is waited for while the group before is reported.
        keys = await asyncio.to_thread(
            self._artifacts.put_many, [extraction.artifact for extraction in fresh if extraction.artifact]
        )
        for extraction, key in zip(fresh, keys, strict=True):
            extraction.artifact_key = key
        return done

    async def _corrected_before(self, begun: "BegunExtraction") -> dict[str, Artifact]:
        """The artifacts, by key, whose corrections go over to the next ones."""
        docs = [begun.extractions[document_id].doc for document_id, _ in begun.outcomes]
        keys = [doc.artifact for doc in docs if _n_corrections(doc) and doc.artifact]
        return await asyncio.to_thread(self._artifacts.get_many, keys) if keys else {}

    def _parse(self, begun: "BegunExtraction", force: bool) -> None:
        begun.outcomes.extend(self._pool.parse_many(self._read(begun.docs, begun.extractions, force=force)))

    def _read(
        self, docs: Sequence[DocStatus], found: dict[str, Extraction], *, force: bool
    ) -> Iterator[tuple[str, str, bytes]]:
        """Read each document and note what is known of it; give those that must be parsed to the pool.

        Runs in the pool's reading thread, ahead of the parsing.
        """
        for doc, read in self._reading.read_all(docs):
            extraction = found[doc.document_id] = Extraction(doc, {})
            if isinstance(read, ReadError):
                extraction.reason, extraction.error = read.reason, str(read)
                continue
            extraction.content_version = read.content_version
            extraction.parts = {"content": hashlib.sha256(read.content).hexdigest()[:32], **self._config_parts}
            if not force and doc.artifact and doc.extraction.parts == extraction.parts:
                extraction.unchanged = True
                continue
            yield doc.document_id, doc.filename, read.content


def _take(extraction: Extraction, outcome: ParsedDocument, chunked: Chunked, finding: Finding) -> None:
    """Note what was found in a parsed document."""
    extraction.bill = finding.bill
    if finding.reason is not None:
        extraction.reason, extraction.error = finding.reason, finding.error
        return
    extraction.n_chars = outcome.n_chars
    extraction.n_pages, extraction.n_empty_pages = outcome.pages or 0, outcome.empty_pages
    extraction.artifact = Artifact(
        chunked.document_id,
        outcome.title,
        outcome.media_type,
        outcome.parser,
        chunkset_hash(chunked.chunks),
        chunked.chunks,
        finding.entries,
        (*outcome.warnings, *finding.warnings),
        parts=extraction.parts,
        n_chars=outcome.n_chars,
    )


def _n_corrections(doc: DocStatus) -> int:
    return 0 if doc.corrections is None else doc.corrections.n


def _with_corrections(doc: DocStatus, artifact: Artifact, previous: Mapping[str, Artifact]) -> Artifact:
    """What was extracted, with the corrections people made to what was extracted before."""
    n = _n_corrections(doc)
    if not n:
        return artifact
    if doc.artifact not in previous:
        _logger.warning("Document '%s': %d corrections were lost with their artifact.", doc.document_id, n)
        return with_lost_corrections(artifact, n)
    carried = carried_over(artifact, previous[doc.artifact])
    if carried.void_corrections:
        _logger.warning(
            "Document '%s': %d of %d corrections are void.", doc.document_id, len(carried.void_corrections), n
        )
    return carried
