"""A parsed document on its way to an artifact: which chunks wait for entries, and what the artifact becomes by them."""

import logging

from ingest_assets.engine import conversation
from ingest_assets.engine.entry_finding import Chunked, Finding, Tell
from ingest_assets.engine.extraction_outcome import Extraction, n_corrections
from ingest_assets.parsing import ParsedDocument
from resources.artifact_store.artifact import Artifact, chunks_of, chunkset_hash, short_hash
from resources.artifact_store.corrections import carried_over, with_lost_corrections

_logger = logging.getLogger(__name__)


class Draft:
    """One document between parser and artifact; what comes of it is noted in its extraction."""

    def __init__(self, extraction: Extraction, parsed: ParsedDocument, previous: Artifact | None) -> None:
        """Cut it, and see what is known of it; `previous`: what was extracted before, if that counts."""
        self.extraction = extraction
        self._parsed = parsed
        self._previous = previous
        self._chunks = chunks_of(extraction.doc.document_id, parsed.pieces)
        self._continued: conversation.Continuation | None = None
        if conversation.is_conversation(parsed.media_type):
            self._continued = conversation.continuation(self._chunks, previous, extraction.doc.last_extracted_turn)
            if self._continued.first_turn:
                extraction.parts = conversation.continued_parts(extraction.parts, extraction.doc.extraction.parts)

    def wanted(self, tell: Tell) -> Chunked:
        """The chunks that need entries; of a conversation, call by call."""
        doc = self.extraction.doc
        if self._continued is None:
            return Chunked(doc.document_id, doc.org_id, self._chunks)
        return Chunked(doc.document_id, doc.org_id, self._continued.chunks, tell)

    def take(self, finding: Finding) -> None:
        """Note what came of it."""
        extraction = self.extraction
        extraction.bill = finding.bill
        extraction.is_whole = True
        if finding.reason is not None:
            extraction.reason, extraction.error, extraction.artifact = finding.reason, finding.error, None
            return
        if self._continued is not None:
            extraction.last_turn = conversation.last_turn_of(self._chunks)
        extraction.artifact = self._artifact(finding, extraction.parts)

    def take_part(self, finding: Finding, n_chunks: int) -> bool:
        """Note what came of the first chunks that were wanted; False if these make no whole turn that is new.

        Until all is extracted the fingerprint is of a content that ends with the last turn, so no record says that
        nothing is left to do.
        """
        assert self._continued is not None
        extraction = self.extraction
        done = conversation.whole_turns(self._continued.chunks, n_chunks)
        last_turn = conversation.last_turn_of(done)
        if last_turn is None or last_turn == extraction.last_turn:
            return False
        extraction.bill, extraction.is_whole, extraction.last_turn = finding.bill, False, last_turn
        ids = {chunk.chunk_id for chunk in done}
        entries = tuple(entry for entry in finding.entries if entry.chunk_id in ids)
        content = short_hash(extraction.parts["content"], "until turn", str(last_turn))
        part = Finding(entries, finding.warnings)
        extraction.artifact = self._artifact(part, {**extraction.parts, "content": content})
        return True

    def _artifact(self, finding: Finding, parts: dict[str, str]) -> Artifact:
        doc, parsed, entries = self.extraction.doc, self._parsed, finding.entries
        if self._continued is not None:
            entries = conversation.memories(doc.org_id, doc.document_id, self._continued.kept, entries)
        artifact = Artifact(
            doc.document_id,
            parsed.title,
            parsed.media_type,
            parsed.parser,
            chunkset_hash(self._chunks),
            self._chunks,
            entries,
            (*parsed.warnings, *finding.warnings),
            parts=parts,
            n_chars=parsed.n_chars,
        )
        return self._with_corrections(artifact)

    def _with_corrections(self, artifact: Artifact) -> Artifact:
        """What was extracted, with the corrections people made to what was extracted before."""
        n = n_corrections(self.extraction.doc)
        if not n:
            return artifact
        if self._previous is None:
            _logger.warning("Document '%s': %d corrections were lost with their artifact.", artifact.document_id, n)
            return with_lost_corrections(artifact, n)
        carried = carried_over(artifact, self._previous)
        if carried.void_corrections:
            _logger.warning(
                "Document '%s': %d of %d corrections are void.", artifact.document_id, len(carried.void_corrections), n
            )
        return carried
