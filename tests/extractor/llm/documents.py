"""Chunks and extractors as the tests here use them."""

from resources.artifact_store.artifact import Chunk, Piece, Place, chunks_of
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.extractor.llm.options import LlmOptions

PROSE = (
    "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed it. "
    "It was never finished in their time, because nobody paid for it any longer."
)


def chunks(*texts, document_id="d"):
    """The chunks of a document."""
    return chunks_of(document_id, [Piece(text, Place(0, len(text))) for text in texts])


def extractor(name, **options):
    """An extractor for a model, priced or not."""
    return LlmExtractor(name, LlmOptions(**{"allow_unpriced": True, **options}))


async def extracting(name, *texts, **options):
    """The entries of a document of these chunks."""
    asked = extractor(name, **options)
    given = texts if isinstance(texts[0], Chunk) else chunks(*texts)
    try:
        return await asked.extract("d", given)
    finally:
        await asked.close()
