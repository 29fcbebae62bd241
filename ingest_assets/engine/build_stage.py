"""The second phase for a group of documents: embed what is new, write it into one store."""

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from ingest_assets.targets import Target
from resources.artifact_store.artifact import Artifact
from resources.document_state.links import owes_content
from resources.document_state.model import DocStatus, LinkState
from resources.document_state.reasons import Reason
from resources.embedder.embedder import EmbedderError, Vectors, vectors_of_texts
from resources.store.store import (
    BuildResult,
    DocumentBuild,
    Removal,
    StoreConfigError,
    StoreError,
    StoreMismatchError,
    StoreUnavailableError,
)

_logger = logging.getLogger(__name__)

# What an error means for a document, the first that fits.
_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (StoreMismatchError, Reason.STORE_MISMATCH),
    (StoreUnavailableError, Reason.STORE_UNAVAILABLE),
    (StoreConfigError, Reason.STORE_MISCONFIGURED),
    (StoreError, Reason.STORE_DAMAGED),
    (EmbedderError, Reason.EMBEDDER_FAILED),
)


class Built(msgspec.Struct, frozen=True):
    """What became of one document in one store.

    `reason` set: it failed, and the store holds what it held. `fenced`: refused, for the store remembers `held_token`.
    """

    fenced: bool = False
    held_token: int = 0
    n_written: int = 0
    reason: Reason | None = None
    error: str = ""


class Trust(StrEnum):
    """What of a store's rows is left as it is and not embedded again."""

    LINKED = "linked"  # chunks of documents whose link says that they are there
    HELD = "held"  # whatever chunks are there, also where no link says so
    NOTHING = "nothing"  # every row is written anew


class BuildStage:
    """Builds documents into one store; knows nothing of claims and records."""

    def __init__(self, target: Target) -> None:
        self._store = target.store
        self._embedder = target.embedder
        self._config_parts = target.parts

    def parts_of(self, doc: DocStatus) -> dict[str, str]:
        """The fingerprint a link has that holds the document's current content."""
        return {"content": doc.artifact_hash, **self._config_parts}

    def needs_write(self, doc: DocStatus, *, renew: bool) -> bool:
        """Whether the store must be touched for the document to stand in it as it should.

        Args:
            doc: its record.
            renew: somebody asked for what is stale by configuration, which by itself is left as it is.
        """
        link = doc.links.get(self._store.slug)
        if link is None or link.state is LinkState.FAILED:
            return True
        if link.parts == self.parts_of(doc):
            return False
        return renew or owes_content(doc, link)

    def write(
        self, docs: Sequence[DocStatus], artifacts: Mapping[str, Artifact], trust: Trust = Trust.LINKED
    ) -> dict[str, Built]:
        """Make documents stand in the store as their artifacts say; what became of each, by document id.

        Args:
            docs: claimed documents.
            artifacts: what extraction made of them, by document id.
            trust: of what the store holds, what is not embedded again.
        """
        if not docs:
            return {}
        try:
            results = self._store.write(self._builds(docs, artifacts, trust))
        except StoreError as error:
            return _all_failed(docs, error)
        except Exception as error:
            if len(docs) > 1:
                # One document must not stop its neighbours: halve the group until the culprit stands alone.
                middle = len(docs) // 2
                halves = (docs[:middle], docs[middle:])
                first, second = (self.write(half, artifacts, trust) for half in halves)
                return first | second
            _logger.exception("Store '%s', document '%s'", self._store.slug, docs[0].document_id)
            return _all_failed(docs, error)
        return {result.document_id: _built(result) for result in results}

    def remove(self, docs: Sequence[DocStatus]) -> dict[str, Built]:
        """Take documents out of the store, and read that they are; what became of each, by document id."""
        if not docs:
            return {}
        try:
            results = self._store.remove([Removal(doc.document_id, doc.token) for doc in docs])
            left = self._store.remaining([result.document_id for result in results if not result.fenced])
        except StoreError as error:
            return _all_failed(docs, error)
        except Exception as error:
            _logger.exception("Store '%s', removing %d documents", self._store.slug, len(docs))
            return _all_failed(docs, error)
        still_there = Built(reason=Reason.NOT_REMOVED, error=f"Store '{self._store.slug}' still holds parts of it.")
        return {result.document_id: still_there if result.document_id in left else _built(result) for result in results}

    def _builds(
        self, docs: Sequence[DocStatus], artifacts: Mapping[str, Artifact], trust: Trust
    ) -> list[DocumentBuild]:
        known = [doc.document_id for doc in docs if trust is Trust.HELD or self._store.slug in doc.links]
        held = self._store.held_chunks(known) if known and trust is not Trust.NOTHING else {}
        new_chunks = [
            chunk
            for doc in docs
            for chunk in artifacts[doc.document_id].chunks
            if chunk.chunk_id not in held.get(doc.document_id, ())
        ]
        vectors = vectors_of_texts(self._embedder, [chunk.text for chunk in new_chunks]) if new_chunks else ()
        by_id = {chunk.chunk_id: vector for chunk, vector in zip(new_chunks, vectors, strict=True)}
        return [
            document_build(
                doc,
                artifact,
                {chunk.chunk_id: by_id[chunk.chunk_id] for chunk in artifact.chunks if chunk.chunk_id in by_id},
                rewrite=trust is Trust.NOTHING,
            )
            for doc in docs
            for artifact in [artifacts[doc.document_id]]
        ]


def document_build(
    doc: DocStatus, artifact: Artifact, vectors: Mapping[str, Vectors], *, rewrite: bool = False
) -> DocumentBuild:
    """The document as it shall stand in any store; `vectors` are those of chunks a store does not hold, by id."""
    return DocumentBuild(
        doc.document_id,
        doc.org_id,
        doc.source,
        doc.source_uri,
        artifact.title,
        doc.token,
        artifact.chunkset_hash,
        artifact.chunks,
        artifact.entries,
        vectors,
        rewrite,
    )


def _built(result: BuildResult) -> Built:
    return Built(fenced=result.fenced, held_token=result.held_token, n_written=result.n_written)


def _all_failed(docs: Sequence[DocStatus], error: Exception) -> dict[str, Built]:
    reason = next((reason for kind, reason in _REASONS if isinstance(error, kind)), Reason.INTERNAL_ERROR)
    return {doc.document_id: Built(reason=reason, error=str(error)) for doc in docs}
