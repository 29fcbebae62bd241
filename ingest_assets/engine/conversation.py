"""A conversation grows: what of it is extracted already stays, and only the turns after it are extracted.

Which turns are after it, the last extraction says: its pointer, and its chunks. An earlier turn that reads otherwise
now, or is gone, takes the pointer back to before it. Pure.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ingest_assets.parsing import CONVERSATION
from resources.artifact_store.artifact import Artifact, Chunk, Entry, memory_id
from resources.artifact_store.corrections import restored

# What decides which entries there are, and not how the text is read and cut: that is done anew with every extraction.
_READING_PARTS = frozenset({"content", "parser", "chunker"})


class Continuation(msgspec.Struct, frozen=True):
    """Where the extraction of a conversation goes on.

    Attributes:
        first_turn: the first turn that is to be extracted; 0: nothing is kept.
        kept: the entries of the turns before it.
        chunks: the chunks of the turns from it on, to be extracted.
    """

    first_turn: int
    kept: tuple[Entry, ...]
    chunks: tuple[Chunk, ...]


def is_conversation(media_type: str) -> bool:
    """Whether a document is a transcript."""
    return media_type == CONVERSATION


def continuation(chunks: Sequence[Chunk], previous: Artifact | None, last_turn: int | None) -> Continuation:
    """What of a conversation is to be extracted.

    Args:
        chunks: all it has now.
        previous: what its last extraction made of it, with people's corrections.
        last_turn: up to where that had got; None: all is to be extracted anew.
    """
    if previous is None or last_turn is None:
        return Continuation(0, (), _from_turn(chunks, 0))
    before = _as_extracted(previous)
    first_turn = _first_other(_texts_by_turn(before.chunks), _texts_by_turn(chunks), last_turn)
    kept_chunks = {chunk.chunk_id for chunk in chunks if _turn(chunk) < first_turn}
    kept = tuple(entry for entry in before.entries if entry.chunk_id in kept_chunks)
    return Continuation(first_turn, kept, _from_turn(chunks, first_turn))


def last_turn_of(chunks: Iterable[Chunk]) -> int | None:
    """The last turn of some chunks; None if none of them is of a turn."""
    return max((chunk.place.turn for chunk in chunks if chunk.place.turn is not None), default=None)


def whole_turns(chunks: Sequence[Chunk], n_done: int) -> Sequence[Chunk]:
    """The chunks of the turns that are done when the first `n_done` chunks are."""
    done = chunks[:n_done]
    if n_done < len(chunks):
        done = [chunk for chunk in done if chunk.place.turn != chunks[n_done].place.turn]
    return done


def memories(org_id: str, document_id: str, kept: Sequence[Entry], found: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries of a conversation, each once, at the first turn that says it; statements are memories.

    Args:
        org_id: whose.
        document_id: the session.
        kept: its entries so far.
        found: what the turns after those say.
    """
    by_id = {entry.entry_id: entry for entry in kept}
    for entry in found:
        kind = "memory" if entry.kind == "statement" else entry.kind
        identity = memory_id(org_id, document_id, kind, _normalized(entry.text))
        by_id.setdefault(identity, Entry(identity, kind, entry.text, entry.chunk_id))
    return tuple(by_id.values())


def continued_parts(parts: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """The fingerprint of an extraction that keeps entries of the one before: its extractor, model and prompt.

    So what an older configuration found stays stale by configuration, and is extracted anew when somebody asks.
    """
    reading = {name: value for name, value in parts.items() if name in _READING_PARTS}
    return reading | {name: value for name, value in before.items() if name not in _READING_PARTS}


def _as_extracted(artifact: Artifact) -> Artifact:
    """The artifact without the corrections that people made."""
    return restored(artifact, [chunk.chunk_id for chunk in artifact.chunks if chunk.correction is not None])


def _first_other(before: Mapping[int, Sequence[str]], now: Mapping[int, Sequence[str]], last_turn: int) -> int:
    turns = range(last_turn + 1)
    return next((turn for turn in turns if before.get(turn) != now.get(turn)), last_turn + 1)


def _texts_by_turn(chunks: Iterable[Chunk]) -> dict[int, list[str]]:
    texts: dict[int, list[str]] = defaultdict(list)
    for chunk in chunks:
        if chunk.place.turn is not None:
            texts[chunk.place.turn].append(chunk.text)
    return texts


def _from_turn(chunks: Sequence[Chunk], first: int) -> tuple[Chunk, ...]:
    return tuple(chunk for chunk in chunks if _turn(chunk) >= first)


def _turn(chunk: Chunk) -> int:
    """Its turn; what belongs to none is before every turn that is extracted, and has no entries."""
    return -1 if chunk.place.turn is None else chunk.place.turn


def _normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
