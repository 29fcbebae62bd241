"""What a model is asked to find, and what it answered: the schema, enforced on our side whatever comes back."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

# Part of every journal key and of a document's fingerprint. A test fails if the schema changes and this does not.
SCHEMA_VERSION = 1

_LONGEST_PROBLEM = 300


class Statement(msgspec.Struct, frozen=True):
    """One fact in a sentence that can be understood alone, with the words of the chunk that say it."""

    text: str
    quotation: str


class Relation(msgspec.Struct, frozen=True):
    """What one entity has to do with another, with the words of the chunk that say it."""

    subject: str
    predicate: str
    object: str
    quotation: str


class Topic(msgspec.Struct, frozen=True):
    """What a chunk is about, with some words of it that show so."""

    name: str
    quotation: str


class ChunkAnswer(msgspec.Struct, frozen=True):
    """What a model found in one chunk. An entity is its own quotation: the name as the chunk writes it."""

    statements: tuple[Statement, ...]
    entities: tuple[str, ...]
    relations: tuple[Relation, ...]
    topics: tuple[Topic, ...]


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one or more calls."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


class Outcome(StrEnum):
    """What an answer is good for."""

    FOUND = "found"
    MALFORMED = "malformed"  # not what was asked for, even if read generously
    REFUSED = "refused"  # a content filter, or the model itself, would not


class Answer(msgspec.Struct, frozen=True):
    """What came of one paid call; JSON-able, to be journaled as it is.

    `by_chunk` maps the chunk keys of the call to what was found; it is empty unless the outcome is `found`. `problem`
    says in words of ours what was wrong otherwise.
    """

    journal_key: str
    outcome: Outcome
    usage: Usage
    by_chunk: Mapping[str, ChunkAnswer] = msgspec.field(default_factory=dict)
    problem: str = ""


class MalformedAnswerError(ValueError):
    """An answer is not of the schema. The message tells the model what was wrong."""


class _AnsweredChunk(ChunkAnswer, frozen=True):
    """A `ChunkAnswer` with the number of the chunk in the prompt, from 1."""

    chunk: int


class _WholeAnswer(msgspec.Struct, frozen=True):
    chunks: tuple[_AnsweredChunk, ...]


def answer_schema() -> dict[str, Any]:
    """The JSON schema of an answer, without references: not every provider follows them."""
    schema = msgspec.json.schema(_WholeAnswer)
    inlined: dict[str, Any] = _without_references(schema, schema.pop("$defs"))
    return inlined


def read_answer(text: str, n_chunks: int) -> list[ChunkAnswer]:
    """What the model found, chunk after chunk.

    Fields nobody asked for are ignored, and so are chunks that were not in the call. A chunk that is answered twice
    has what both say.

    Args:
        text: JSON, perhaps fenced as Markdown does it.
        n_chunks: how many chunks the call had.

    Raises:
        MalformedAnswerError: it is no JSON, not of the schema, or leaves a chunk out.
    """
    try:
        found = msgspec.json.decode(_unfenced(text), type=_WholeAnswer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MalformedAnswerError(f"It is not of the schema: {str(error)[:_LONGEST_PROBLEM]}.") from None
    by_number: dict[int, ChunkAnswer] = {}
    for chunk in found.chunks:
        by_number[chunk.chunk] = _joined(by_number.get(chunk.chunk), chunk)
    missing = [str(number) for number in range(1, n_chunks + 1) if number not in by_number]
    if missing:
        raise MalformedAnswerError(f"Nothing was said about these chunks: {', '.join(missing)}."[:_LONGEST_PROBLEM])
    return [by_number[number] for number in range(1, n_chunks + 1)]


def _joined(known: ChunkAnswer | None, more: ChunkAnswer) -> ChunkAnswer:
    known = known or ChunkAnswer((), (), (), ())
    return ChunkAnswer(
        known.statements + more.statements,
        known.entities + more.entities,
        known.relations + more.relations,
        known.topics + more.topics,
    )


def _unfenced(text: str) -> str:
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped.removeprefix("```json").strip("`")
    return stripped


def _without_references(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_without_references(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _without_references(definitions[node["$ref"].rpartition("/")[2]], definitions)
    # Titles and descriptions are names and docstrings of classes, and would be paid for in every call.
    return {
        name: _without_references(value, definitions)
        for name, value in node.items()
        if not (name in {"title", "description"} and isinstance(value, str))
    }
