"""Answers become entries of a document: what is not in its chunk is dropped and counted."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from resources.artifact_store.artifact import Chunk, Entry, entry_id
from resources.extractor.llm.answer import ChunkAnswer
from resources.extractor.llm.prompt import (
    ENTITIES_PER_CHUNK,
    RELATIONS_PER_CHUNK,
    STATEMENTS_PER_CHUNK,
    TOPICS_PER_CHUNK,
)
from resources.extractor.llm.quotation import is_quotation, normalized

_LONGEST_TEXT = 1000


class Found(msgspec.Struct, frozen=True):
    """A document's entries, and how many findings were dropped: not in their chunk, or beyond what was asked for."""

    entries: tuple[Entry, ...]
    n_unquoted: int = 0
    n_beyond: int = 0


def entries_of(document_id: str, chunks: Sequence[Chunk], answers: Sequence[ChunkAnswer]) -> Found:
    """The entries of a document, in the order of its chunks; each stands once, at the first chunk that says it.

    Args:
        document_id: whose entries they are; part of their ids.
        chunks: all chunks of the document.
        answers: what was found in each, in the same order.
    """
    entries: dict[tuple[str, str], Entry] = {}
    n_unquoted = n_beyond = 0
    for chunk, answer in zip(chunks, answers, strict=True):
        searched = normalized(chunk.text)
        for kind, (findings, limit) in _by_kind(answer).items():
            n_beyond += max(0, len(findings) - limit)
            for text, quotation in findings[:limit]:
                words = " ".join(text.split())[:_LONGEST_TEXT]
                if not words or not is_quotation(quotation, searched):
                    n_unquoted += 1
                elif (kind, words) not in entries:
                    identity = entry_id(document_id, chunk.chunk_id, kind, words)
                    entries[kind, words] = Entry(identity, kind, words, chunk.chunk_id)
    return Found(tuple(entries.values()), n_unquoted, n_beyond)


def _by_kind(answer: ChunkAnswer) -> Mapping[str, tuple[list[tuple[str, str]], int]]:
    """Text and quotation of each finding, by kind of entry, and how many of them were asked for."""
    return {
        "statement": ([(item.text, item.quotation) for item in answer.statements], STATEMENTS_PER_CHUNK),
        "entity": ([(name, name) for name in answer.entities], ENTITIES_PER_CHUNK),
        "relation": (list(_relations(answer)), RELATIONS_PER_CHUNK),
        "topic": ([(item.name, item.quotation) for item in answer.topics], TOPICS_PER_CHUNK),
    }


def _relations(answer: ChunkAnswer) -> Iterator[tuple[str, str]]:
    for item in answer.relations:
        yield f"{item.subject} {item.predicate} {item.object}", item.quotation
