"""What every kind of store refuses, whatever it is made of: rules about what is given, without any I/O."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.document_changes import PlacedChunk
from resources.store.store import DocumentBuild, StoreChangedError, StoreMismatchError, StoreTooNewError


def refuse_twice(document_ids: Iterable[str]) -> None:
    """Refuse a call that names a document twice: which of the two should stand?"""
    for document_id, n_times in Counter(document_ids).items():
        if n_times > 1:
            raise ValueError(f"Document '{document_id}' is given {n_times} times in one call.")


def check_builds(builds: Sequence[DocumentBuild]) -> None:
    """Refuse builds that no store could make stand."""
    refuse_twice(build.document_id for build in builds)
    for build in builds:
        if len({chunk.chunk_id for chunk in build.chunks}) < len(build.chunks):
            raise ValueError(f"Document '{build.document_id}' has two chunks with one id.")


def check_query(stamp: EmbedderStamp, vector: Vectors) -> None:
    """Refuse a vector the store's vectors cannot be compared with."""
    if vector.shape != (stamp.dimension,) or not np.isfinite(vector).all():
        raise ValueError(f"The query must be {stamp.dimension} finite numbers, not shape {vector.shape}.")


def check_format(store: str, place: str, found: int, known: int) -> None:
    """Refuse data of a newer program.

    Raises:
        StoreTooNewError: `found` is a later version of the store's shape than `known`, the latest of ours.
    """
    if found > known:
        raise StoreTooNewError(
            store,
            f"{place} has format version {found}, and this program knows versions up to {known}. "
            "Update the program, or build into a new store.",
        )


def holds_vectors_of(
    stamp: EmbedderStamp, recorded: EmbedderStamp | None, has_chunks: Callable[[], bool], store: str
) -> bool:
    """Whether the store is our embedder's. Another's may be taken over while it holds no vector.

    Raises:
        StoreMismatchError: it holds vectors of another embedder.
    """
    if recorded == stamp:
        return True
    if recorded is not None and has_chunks():
        raise StoreMismatchError(
            store,
            f"holds vectors of embedder {recorded}, and is configured for {stamp}. Vectors of two embedders "
            f"cannot be compared: set the embedder back to '{recorded.name}', build into a new store, or "
            f"build this one anew: `ingest run --store {store} --stale`.",
        )
    return False


def vectors_of(store: str, stamp: EmbedderStamp, chunks: Sequence[PlacedChunk]) -> Vectors:
    """The new chunks' vectors, one row each, finite and of the embedder's dimension.

    Raises:
        StoreChangedError: a chunk has no vector.
    """
    given = []
    for build, _, chunk in chunks:
        vector = build.vectors.get(chunk.chunk_id)
        if vector is None:
            raise StoreChangedError(
                store,
                f"does not hold chunk {chunk.chunk_id} of document '{build.document_id}', and no vector was "
                "given for it. Ask again what is held, and write again.",
            )
        if len(vector) != stamp.dimension:
            raise ValueError(f"Document '{build.document_id}': a vector of {len(vector)} numbers; {stamp} is needed.")
        given.append(vector)
    vectors = np.array(given, dtype=np.float32).reshape(len(given), stamp.dimension)
    if not np.isfinite(vectors).all():
        raise ValueError("A vector holds NaN or infinity.")
    return vectors
