"""What writing some documents has to change in an OpenSearch index."""

from collections.abc import Mapping, Sequence

from resources.embedder.embedder import EmbedderStamp
from resources.store.document_changes import PlacedChunk
from resources.store.opensearch.held import Held, KeptVector, read_vectors
from resources.store.opensearch.index import StoreIndex
from resources.store.opensearch.rows import Head, head_of, new_generation, row_actions
from resources.store.opensearch.writer import Change
from resources.store.store import BuildResult, DocumentBuild, Removal
from resources.store.store_rules import vectors_of

# Generations a call has written in vain, by document id: another writer's head was there first.
Dead = Mapping[str, frozenset[str]]
# What to report for each document, and the changes that make it true.
Plan = tuple[list[BuildResult], list[Change]]


def changes_for(
    index: StoreIndex,
    stamp: EmbedderStamp,
    builds: Sequence[DocumentBuild],
    held: Mapping[str, Held],
    dead: Dead,
) -> list[Change]:
    """The changes that make documents stand as given; none for one that does already.

    A document of which a row changes is written as a whole, under a new generation: old and new rows must not be seen
    together. Its held chunks' vectors are taken from the index.

    Raises:
        StoreChangedError: a chunk is neither held nor given a vector.
    """
    changes = []
    rewritten = []
    for build in builds:
        document = held[build.document_id]
        head = _head_that_keeps_rows(build, document, stamp)
        if head is None:
            rewritten.append(build)
        elif head != document.head or document.strangers:
            changes.append(Change(head, document, dead=dead.get(build.document_id, frozenset())))
    return changes + _rewrites(index, stamp, rewritten, held, dead)


def result_of(build: DocumentBuild, document: Held) -> BuildResult:
    """What writing a document does, counted in chunks; a held chunk counts as kept wherever its row is."""
    if document.is_fenced(build.fencing_token):
        return BuildResult(build.document_id, fenced=True, held_token=document.newest_token())
    wanted = {chunk.chunk_id for chunk in build.chunks}
    n_kept = 0 if build.rewrite else len(wanted & document.chunks)
    return BuildResult(
        build.document_id, n_written=len(wanted) - n_kept, n_kept=n_kept, n_removed=len(document.chunks - wanted)
    )


def result_of_removal(removal: Removal, document: Held) -> BuildResult:
    """What removing a document does, counted in chunks."""
    if document.is_fenced(removal.fencing_token):
        return BuildResult(removal.document_id, fenced=True, held_token=document.newest_token())
    return BuildResult(removal.document_id, n_removed=document.counts["chunk"])


def _head_that_keeps_rows(build: DocumentBuild, document: Held, stamp: EmbedderStamp) -> Head | None:
    """The new head if the rows can stay as they are; None if they cannot."""
    old = document.head
    if build.rewrite or old is None or old.removed or not document.is_whole():
        return None
    head = head_of(build, old.generation, stamp)
    return head if (head.rows_hash, head.embedder) == (old.rows_hash, old.embedder) else None


def _rewrites(
    index: StoreIndex,
    stamp: EmbedderStamp,
    builds: Sequence[DocumentBuild],
    held: Mapping[str, Held],
    dead: Dead,
) -> list[Change]:
    kept = _kept_vectors(index, stamp, builds, held)
    new = [
        PlacedChunk(build, ordinal, chunk)
        for build in builds
        for ordinal, chunk in enumerate(build.chunks)
        if (build.document_id, chunk.chunk_id) not in kept
    ]
    vectors = {key: found.vector for key, found in kept.items()} | {
        (placed.build.document_id, placed.chunk.chunk_id): vector
        for placed, vector in zip(new, vectors_of(index.cluster.store, stamp, new), strict=True)
    }
    changes = []
    for build in builds:
        generation = new_generation()
        own = {chunk.chunk_id: vectors[build.document_id, chunk.chunk_id] for chunk in build.chunks}
        unsound = {
            chunk.chunk_id: found.checksum
            for chunk in build.chunks
            if (found := kept.get((build.document_id, chunk.chunk_id))) is not None and not found.is_sound
        }
        changes.append(
            Change(
                head_of(build, generation, stamp),
                held[build.document_id],
                list(row_actions(build, generation, stamp, own, unsound)),
                dead.get(build.document_id, frozenset()),
            )
        )
    return changes


def _kept_vectors(
    index: StoreIndex, stamp: EmbedderStamp, builds: Sequence[DocumentBuild], held: Mapping[str, Held]
) -> dict[tuple[str, str], KeptVector]:
    generations = [
        document.head.generation
        for build in builds
        for document in [held[build.document_id]]
        if document.head and not build.rewrite and any(chunk.chunk_id in document.chunks for chunk in build.chunks)
    ]
    return read_vectors(index, generations, stamp)
