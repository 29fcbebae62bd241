"""Knowledge entries without a model or a network: the same chunks give the same entries on every machine."""

from collections.abc import Iterator, Sequence

from resources.artifact_store.artifact import Chunk, Entry, entry_id
from resources.extractor.entities import entities_in
from resources.extractor.extractor import Extractor
from resources.extractor.key_phrases import best_phrases, phrases_in
from resources.extractor.prose import is_statement, paragraphs_of, sentences_of

STATEMENTS_PER_CHUNK = 5
ENTITIES_PER_CHUNK = 5
PHRASES_PER_DOCUMENT = 12


class LocalExtractor(Extractor):
    """Statements are sentences of prose, key phrases what a document repeats, entities what a form gives away.

    Each is tied to the first chunk it occurs in, and stands once in a document. Made for English; in other languages
    statements and entities are found, key phrases are poor.
    """

    name = "local"
    version = "1"

    async def extract(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[Entry, ...]:
        """See `Extractor.extract`."""
        paragraphs = [list(paragraphs_of(chunk.text)) for chunk in chunks]
        phrases = _phrases_by_chunk(paragraphs)
        entries: dict[tuple[str, str], Entry] = {}
        for chunk, prose, its_phrases in zip(chunks, paragraphs, phrases, strict=True):
            for kind, text in _found_in(prose, its_phrases):
                if (kind, text) not in entries:
                    identity = entry_id(document_id, chunk.chunk_id, kind, text)
                    entries[kind, text] = Entry(identity, kind, text, chunk.chunk_id)
        return tuple(entries.values())


def _found_in(paragraphs: Sequence[str], phrases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Kind and text of everything one chunk says, bounded in number."""
    for statement in _statements(paragraphs):
        yield "statement", statement
    for phrase in phrases:
        yield "key_phrase", phrase
    for entity in _entities(paragraphs):
        yield "entity", entity


def _statements(paragraphs: Sequence[str]) -> list[str]:
    statements: list[str] = []
    for paragraph in paragraphs:
        statements.extend(sentence for sentence in sentences_of(paragraph) if is_statement(sentence))
        if len(statements) >= STATEMENTS_PER_CHUNK:
            break
    return statements[:STATEMENTS_PER_CHUNK]


def _entities(paragraphs: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for paragraph in paragraphs:
        found.update(dict.fromkeys(entities_in(paragraph)))
    return list(found)[:ENTITIES_PER_CHUNK]


def _phrases_by_chunk(paragraphs: Sequence[Sequence[str]]) -> list[list[str]]:
    """The document's best phrases, each at the first chunk that has it."""
    candidates = [[phrase for paragraph in prose for phrase in phrases_in(paragraph)] for prose in paragraphs]
    best = best_phrases((phrase for found in candidates for phrase in found), PHRASES_PER_DOCUMENT)
    wanted = dict.fromkeys(best)
    by_chunk: list[list[str]] = []
    for found in candidates:
        here = wanted.keys() & set(found)
        by_chunk.append([phrase for phrase in wanted if phrase in here])
        wanted = {phrase: None for phrase in wanted if phrase not in here}
    return by_chunk
