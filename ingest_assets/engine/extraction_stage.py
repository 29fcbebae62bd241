"""The first phase for a group of documents: read, parse, chunk, extract, keep the artifact."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial

from ingest_assets.engine.conversation import is_conversation
from ingest_assets.engine.draft import Draft
from ingest_assets.engine.entry_finding import EntryFinder, Finding
from ingest_assets.engine.extraction_outcome import Extraction, n_corrections
from ingest_assets.engine.progress import Milestone, Progress
from ingest_assets.engine.read_ahead import ReadAhead
from ingest_assets.parsing import ParsedDocument, ParseFailure, ParserPool
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_store import ArtifactStore
from resources.document_source.document_source import DocumentSource, ReadError
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.model import DocStatus, Status
from resources.document_state.transitions import IMPORTED_PART

PublishPart = Callable[[Extraction], Awaitable[bool]]


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
        loop = asyncio.get_running_loop()
        is_read = partial(loop.call_soon_threadsafe, self._progress.reaches, Milestone.READ)
        begun.parsed = loop.run_in_executor(None, self._parse, begun, force, is_read)
        return begun

    async def finish(self, begun: "BegunExtraction", publish_part: PublishPart) -> list[Extraction]:
        """Chunks and entries of a begun group; one result for each document, in order.

        Artifacts are durable when this returns.

        Args:
            begun: the group.
            publish_part: called when more of a conversation is extracted, and durable, and not yet all; False: it is
                not ours any more.
        """
        if begun.parsed is not None:
            await begun.parsed
        self._progress.enters(JobStage.FILTERING)
        drafts = await self._drafts(begun)
        for _ in range(len(begun.docs) - len(drafts)):
            self._progress.reaches(Milestone.EXTRACTED)
        wanted = [draft.wanted(partial(self._tell, draft, publish_part)) for draft in drafts]
        findings = await self._entries.find(wanted) if wanted else []
        for draft, finding in zip(drafts, findings, strict=True):
            draft.take(finding)
        done = [begun.extractions[doc.document_id] for doc in begun.docs]
        self._progress.enters(JobStage.PERSISTING)
        await self._keep([extraction for extraction in done if extraction.artifact is not None])
        return done

    async def _tell(self, draft: Draft, publish_part: PublishPart, finding: Finding, n_chunks: int) -> bool:
        """Keep and publish what came of the first chunks of a conversation."""
        if not draft.take_part(finding, n_chunks):
            return True
        await self._keep([draft.extraction])
        return await publish_part(draft.extraction)

    async def _keep(self, extractions: Sequence[Extraction]) -> None:
        """Make artifacts durable."""
        # In a thread: a bucket is waited for while the group before is reported.
        keys = await asyncio.to_thread(
            self._artifacts.put_many, [extraction.artifact for extraction in extractions if extraction.artifact]
        )
        for extraction, key in zip(extractions, keys, strict=True):
            extraction.artifact_key = key

    async def _drafts(self, begun: "BegunExtraction") -> list[Draft]:
        """The documents that could be parsed."""
        previous = await self._previous(begun)
        drafts = []
        for document_id, outcome in begun.outcomes:
            extraction = begun.extractions[document_id]
            extraction.seconds = outcome.seconds
            if isinstance(outcome, ParseFailure):
                extraction.reason, extraction.error = outcome.reason, outcome.detail
            else:
                extraction.note_parsed(outcome)
                drafts.append(Draft(extraction, outcome, previous.get(extraction.doc.artifact)))
        return drafts

    async def _previous(self, begun: "BegunExtraction") -> dict[str, Artifact]:
        """The artifacts, by key, of which something goes over to the next ones."""
        docs = [begun.extractions[document_id].doc for document_id, _ in begun.outcomes]
        keys = [
            doc.artifact for doc in docs if doc.artifact and (n_corrections(doc) or is_conversation(doc.media_type))
        ]
        return await asyncio.to_thread(self._artifacts.get_many, keys) if keys else {}

    def _parse(self, begun: "BegunExtraction", force: bool, is_read: Callable[[], object]) -> None:
        for outcome in self._pool.parse_many(self._read(begun, is_read, force=force)):
            begun.outcomes.append(outcome)
            is_read()

    def _read(
        self, begun: "BegunExtraction", is_read: Callable[[], object], *, force: bool
    ) -> Iterator[tuple[str, str, bytes]]:
        """Read each document and note what is known of it; give those that must be parsed to the pool.

        Runs in the pool's reading thread, ahead of the parsing.
        """
        for doc, read in self._reading.read_all(begun.docs):
            extraction = begun.extractions[doc.document_id] = Extraction(doc, {})
            if isinstance(read, ReadError):
                extraction.reason, extraction.error = read.reason, str(read)
                is_read()
                continue
            extraction.content_version, extraction.size = read.content_version, len(read.content)
            extraction.parts = {"content": hashlib.sha256(read.content).hexdigest()[:32], **self._config_parts}
            if not force and _is_as_extracted(doc, extraction.parts):
                extraction.unchanged = True
                is_read()
                continue
            yield doc.document_id, doc.filename, read.content


def _is_as_extracted(doc: DocStatus, parts: Mapping[str, str]) -> bool:
    """Whether what was extracted last is what would be now; without a pointer, all of a conversation is asked for."""
    is_asked_for = is_conversation(doc.media_type) and doc.last_extracted_turn is None
    return bool(doc.artifact) and doc.extraction.parts == parts and not is_asked_for
