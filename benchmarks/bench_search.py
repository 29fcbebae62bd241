"""How often, and how fast, a search finds its document: `python -m benchmarks.bench_search`, beside an ingest.toml.

The questions are first halves of sentences, drawn from the documents of the default store: an exact answer exists, and
nobody had to judge. What people ask is less like the text, and words help them less.
"""

import asyncio
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ingest_assets.components import Components
from ingest_assets.requests.searching import nearest
from ingest_assets.settings import load_settings
from ingest_assets.targets import Target
from resources.store.store import Hit

QUESTIONS = 200
PLACES = 5
_CHUNKS_READ = 1_000
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_FEWEST_WORDS = 14

Search = Callable[[str], Sequence[Hit]]


def documents_of(target: Target) -> Iterator[str]:
    """Every document the store holds."""
    after = ""
    while page := target.store.held_documents(after):
        yield from (held.document_id for held in page)
        after = page[-1].document_id


def half_sentence(target: Target, org_id: str, document_id: str, chance: random.Random) -> str:
    """The first half of a sentence of a document; "" where none is long enough."""
    vector = target.embedder.embed(["anything"])[0]
    hits = target.store.search(vector, _CHUNKS_READ, org_id=org_id, document_id=document_id)
    sentences = [words for hit in hits for text in _SENTENCE_ENDS.split(hit.text) if (words := text.split())]
    long = sorted(words for words in sentences if len(words) >= _FEWEST_WORDS and words[0][:1].isupper())
    if not long:
        return ""
    chosen = chance.choice(long)
    return " ".join(chosen[: len(chosen) // 2])


def measured(search: Search, questions: Sequence[tuple[str, str]]) -> tuple[int, float]:
    """For how many the document is among the first, and the median of how long one takes, in seconds."""
    n_found, seconds = 0, []
    for question, document_id in questions:
        start = time.perf_counter()
        hits = search(question)
        seconds.append(time.perf_counter() - start)
        first = list(dict.fromkeys(hit.document_id for hit in hits))[:PLACES]
        n_found += document_id in first
    return n_found, statistics.median(seconds)


async def main() -> None:
    """Draw the questions, and ask each by vectors alone and as `ingest search` does."""
    settings = load_settings()
    async with Components(settings) as components:
        target = await components.target(settings.default_store)
    chance = random.Random(5)
    ids = list(documents_of(target))
    chance.shuffle(ids)
    drawn = ((half_sentence(target, settings.org_id, document_id, chance), document_id) for document_id in ids)
    questions = list(islice((pair for pair in drawn if pair[0]), QUESTIONS))
    if not questions:
        raise SystemExit("The default store has no document with a long sentence: `ingest run` first.")

    def by_vectors(question: str) -> Sequence[Hit]:
        vector = target.embedder.embed([question])[0]
        return target.store.search(vector, 10 * PLACES, org_id=settings.org_id)

    def with_words(question: str) -> Sequence[Hit]:
        return nearest(target, question, 10 * PLACES, org_id=settings.org_id)

    by_vectors(questions[0][0])  # loads the model
    n_alone, alone = measured(by_vectors, questions)
    n_both, both = measured(with_words, questions)
    print(f"{len(ids):,} documents, {len(questions)} half sentences; their document is among the first {PLACES}:")
    print(f"  by vectors alone  {n_alone:4}  {alone * 1000:6.0f} ms")
    print(f"  with words        {n_both:4}  {both * 1000:6.0f} ms, {both / alone:.1f} times")


if __name__ == "__main__":
    asyncio.run(main())
