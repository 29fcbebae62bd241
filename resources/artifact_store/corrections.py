"""What people correct in the chunks of an artifact: made, taken back, and carried over to the next extraction.

A chunk that nobody corrected keeps its id whatever happens to the others. A corrected one gets an id from its new text
that no other chunk of the document has or had from extraction, so an id never comes to mean another chunk.
"""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count

import msgspec

from resources.artifact_store.artifact import Artifact, Chunk, Correction, Entry, chunk_id, chunkset_hash, entry_id
from resources.clock import to_the_second

# How many chunks of one text a document may have for `is_as_shown` to know all of them.
_OCCURRENCES = 100


class UnknownChunkError(ValueError):
    """The document has no chunk of this id. `chunk_id` is the id."""

    def __init__(self, chunk_id: str) -> None:
        super().__init__(f"It has no chunk '{chunk_id}', or none any more. Show its chunks again.")
        self.chunk_id = chunk_id


class ChunkChangedError(Exception):
    """Somebody else has corrected a chunk since it was shown. Nothing was written. `chunk_id` is the id it had."""

    def __init__(self, chunk_id: str, correction: Correction) -> None:
        when = f"{to_the_second(correction.at)} UTC"
        super().__init__(f"Chunk '{chunk_id}' was changed by {correction.by} at {when}. Show it again.")
        self.chunk_id = chunk_id


class Signature(msgspec.Struct, frozen=True):
    """Who corrects, when, and why if that is said."""

    by: str
    at: datetime
    note: str = ""


def corrected(artifact: Artifact, texts: Mapping[str, str], signature: Signature) -> Artifact:
    """The artifact with other texts in some chunks; what extraction made of them is kept beside.

    A chunk that gets the text which extraction had made of it counts as never corrected.

    Args:
        artifact: as it is kept.
        texts: the new texts, not blank, by the id the chunk has now.
        signature: whose correction it is.

    Raises:
        ChunkChangedError: a chunk has been corrected since it had this id.
        UnknownChunkError: no chunk has this id.
    """
    _check_known(artifact, texts)
    taken = _ids_ever(artifact)
    chunks = []
    for chunk in artifact.chunks:
        text = texts.get(chunk.chunk_id, chunk.text)
        if text == chunk.text:
            chunks.append(chunk)
            continue
        before = chunk.correction
        original_id, original = (before.original_id, before.original_text) if before else (chunk.chunk_id, chunk.text)
        if text == original:
            chunks.append(_as_extracted(chunk))
            continue
        correction = Correction(original_id, original, signature.by, signature.at, signature.note)
        new_id = _free_id(artifact.document_id, text, taken)
        taken.add(new_id)
        chunks.append(Chunk(new_id, text, chunk.place, correction))
    return _with_chunks(artifact, chunks)


def restored(artifact: Artifact, chunk_ids: Collection[str]) -> Artifact:
    """The artifact without the corrections of these chunks; of a void one nothing is left.

    Raises:
        ChunkChangedError: a chunk has been corrected since it had this id.
        UnknownChunkError: no chunk and no void correction has this id.
    """
    void = tuple(chunk for chunk in artifact.void_corrections if chunk.chunk_id not in chunk_ids)
    dropped = {chunk.chunk_id for chunk in artifact.void_corrections} - {chunk.chunk_id for chunk in void}
    _check_known(artifact, set(chunk_ids) - dropped)
    chunks = [_as_extracted(chunk) if chunk.chunk_id in chunk_ids else chunk for chunk in artifact.chunks]
    return msgspec.structs.replace(_with_chunks(artifact, chunks), void_corrections=void)


def carried_over(fresh: Artifact, previous: Artifact) -> Artifact:
    """A fresh extraction with the corrections of the previous one, void ones included, where their originals are.

    The others are void, and kept: should their original come back, so do they.
    """
    by_original = {chunk.correction.original_id: chunk for chunk in corrections_of(previous) if chunk.correction}
    present = {chunk.chunk_id for chunk in fresh.chunks}
    void = tuple(chunk for original_id, chunk in by_original.items() if original_id not in present)
    taken = present | {chunk.chunk_id for chunk in by_original.values()}
    chunks = []
    for chunk in fresh.chunks:
        before = by_original.get(chunk.chunk_id)
        if before is None:
            chunks.append(chunk)
            continue
        is_free = before.chunk_id not in present  # else the new content has a chunk of that text itself
        new_id = before.chunk_id if is_free else _free_id(fresh.document_id, before.text, taken)
        taken.add(new_id)
        chunks.append(Chunk(new_id, before.text, chunk.place, before.correction))
    return msgspec.structs.replace(_with_chunks(fresh, chunks), void_corrections=void)


def corrections_of(artifact: Artifact) -> list[Chunk]:
    """The corrected chunks, in the order of the document, then the void ones."""
    return [*(chunk for chunk in artifact.chunks if chunk.correction is not None), *artifact.void_corrections]


def warnings_of(artifact: Artifact) -> tuple[str, ...]:
    """What a person should know of the document: the warnings of its extraction, and void corrections."""
    n = len(artifact.void_corrections)
    if not n:
        return artifact.warnings
    are = "1 correction is" if n == 1 else f"{n} corrections are"
    return (*artifact.warnings, f"{are} void: the document does not have the corrected text any more.")


def with_lost_corrections(fresh: Artifact, n: int) -> Artifact:
    """A fresh extraction that says how many corrections went with the artifact before it."""
    were = "1 correction was" if n == 1 else f"{n} corrections were"
    warning = f"{were} lost with the artifact that held {'it' if n == 1 else 'them'}, which is gone or damaged."
    return msgspec.structs.replace(fresh, warnings=(*fresh.warnings, warning))


def is_as_shown(document_id: str, shown_id: str, text: str) -> bool:
    """Whether a chunk of this id had this text when it was shown: the id says so, whoever has changed it since."""
    return any(chunk_id(document_id, text, occurrence) == shown_id for occurrence in range(_OCCURRENCES))


def _check_known(artifact: Artifact, chunk_ids: Collection[str]) -> None:
    known = {chunk.chunk_id for chunk in artifact.chunks}
    originals = {chunk.correction.original_id: chunk.correction for chunk in artifact.chunks if chunk.correction}
    for unknown in sorted(set(chunk_ids) - known):
        if unknown in originals:
            raise ChunkChangedError(unknown, originals[unknown])
        raise UnknownChunkError(unknown)


def _ids_ever(artifact: Artifact) -> set[str]:
    """Every id a chunk of the artifact has, or would have again if its correction was taken back."""
    found = {chunk.chunk_id for chunk in (*artifact.chunks, *artifact.void_corrections)}
    return found | {chunk.correction.original_id for chunk in corrections_of(artifact) if chunk.correction}


def _free_id(document_id: str, text: str, taken: Container[str]) -> str:
    return next(found for found in _ids_of(document_id, text) if found not in taken)


def _ids_of(document_id: str, text: str) -> Iterator[str]:
    return (chunk_id(document_id, text, occurrence) for occurrence in count())


def _as_extracted(chunk: Chunk) -> Chunk:
    if chunk.correction is None:
        return chunk
    return Chunk(chunk.correction.original_id, chunk.correction.original_text, chunk.place)


def _with_chunks(artifact: Artifact, chunks: Sequence[Chunk]) -> Artifact:
    """The artifact with a chunk in the place of each; entries go with the chunk they were found in."""
    renamed = {
        old.chunk_id: new.chunk_id
        for old, new in zip(artifact.chunks, chunks, strict=True)
        if old.chunk_id != new.chunk_id
    }
    entries = tuple(
        _tied(artifact.document_id, entry, renamed[entry.chunk_id]) if entry.chunk_id in renamed else entry
        for entry in artifact.entries
    )
    return msgspec.structs.replace(artifact, chunkset_hash=chunkset_hash(chunks), chunks=tuple(chunks), entries=entries)


def _tied(document_id: str, entry: Entry, new_id: str) -> Entry:
    """The entry at its chunk's new id. An id that is made of the chunk's changes with it; a memory's is not."""
    is_of_chunk = entry.entry_id == entry_id(document_id, entry.chunk_id, entry.kind, entry.text)
    identity = entry_id(document_id, new_id, entry.kind, entry.text) if is_of_chunk else entry.entry_id
    return Entry(identity, entry.kind, entry.text, new_id)
