"""What extracting documents would cost: they are read, parsed and cut as a run would do it, and nothing is kept."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from ingest_assets.components import Components
from ingest_assets.engine.conversation import continuation, is_conversation
from ingest_assets.engine.read_ahead import ReadAhead
from ingest_assets.parsing import ParsedDocument, ParseFailure, ParserPool
from ingest_assets.upkeep.staleness import Configured, extraction_differences
from resources.artifact_store.artifact import Chunk, chunks_of
from resources.clock import utc_now
from resources.document_source.document_ids import shown_key
from resources.document_source.document_source import DocumentSource, ReadError
from resources.document_state.reasons import Reason
from resources.document_state.spend_book import SpendTotals, added_up
from resources.document_state.spend_ledger import SpendReport, day_of

if TYPE_CHECKING:
    from resources.extractor.llm.llm_extractor import LlmExtractor

# So many days of the ledger say what calls really come to.
_DAYS_OF_EXPERIENCE = timedelta(days=30)
# Who must not take longer than so many seconds looks at the clock after so many documents.
_AT_ONCE_ON_TIME = 10


class DocumentCost(msgspec.Struct, frozen=True):
    """What one document would cost, in millionths of a dollar, or the reason why it cannot be extracted.

    Attributes:
        document_id: which.
        n_calls: how many calls it takes; a chunk that an earlier document brings is not asked for again.
        n_answered: how many of its chunks cost nothing: their answers are journaled, or an earlier document's.
            Turns of a conversation that are extracted already are not counted.
        input_tokens: what the calls say, as counted.
        worst_micro_usd: what is reserved for them.
        expected_micro_usd: what they cost if they come to the share of their worst case that calls to this model came
            to in the last thirty days; None: there were none.
        reason: why it cannot be read or parsed; `error` says more.
    """

    document_id: str
    n_calls: int = 0
    n_answered: int = 0
    input_tokens: int = 0
    worst_micro_usd: int = 0
    expected_micro_usd: int | None = None
    reason: Reason | None = None
    error: str = ""


class SpendEstimate(msgspec.Struct, frozen=True):
    """What documents would cost together; `left_micro_usd` is what a new job may reserve now, None without ceilings.

    `documents`: those that were read, the first ones if there was no time for more. The sums are of these.
    """

    documents: list[DocumentCost]
    n_calls: int
    n_answered: int
    worst_micro_usd: int
    expected_micro_usd: int | None
    left_micro_usd: int | None


class _Wanted(msgspec.Struct, frozen=True):
    """A document that is to be read."""

    document_id: str
    source: str
    source_uri: str
    size: int = 0


async def estimate_spending(
    components: Components,
    documents: Sequence[tuple[str, str]],
    advance: Callable[[int], None],
    *,
    renews: bool,
    seconds: float = math.inf,
) -> SpendEstimate | None:
    """What the extraction of documents would cost; None if the extractor is not paid. Changes nothing.

    Args:
        components: what the work needs.
        documents: document ids and source URIs, in the order of the work.
        advance: told how many more documents are read and parsed.
        renews: what an older configuration extracted is asked for anew, of conversations also the old turns.
        seconds: after so many no further documents are begun, but for the first few.

    Raises:
        ExtractorConfigError: the extractor cannot work as it is configured.
    """
    extractor = components.extractor
    if not extractor.is_paid:
        return None
    # Imported late: most projects pay for nothing, and each command would wait for it.
    from resources.extractor.llm.llm_extractor import LlmExtractor

    assert isinstance(extractor, LlmExtractor)
    extractor.check()
    settings, now = components.settings, utc_now()
    report = await components.ledger.report(day_of(now - _DAYS_OF_EXPERIENCE))
    share = _share_of_worst(report, extractor.model)
    renewed_by = await components.configured() if renews else None
    costing = _Costing(components, extractor, await components.sources(), share, renewed_by)
    wanted = [_Wanted(document_id, uri.partition(":")[0], uri) for document_id, uri in documents]
    size = settings.runs.group if math.isinf(seconds) else _AT_ONCE_ON_TIME
    until = time.monotonic() + seconds
    with ParserPool(settings.parser_workers, settings.parse_limits, settings.parser_chunking) as pool:
        for first in range(0, len(wanted), size):
            if first and time.monotonic() > until:
                break
            group = wanted[first : first + size]
            await costing.add(group, pool)
            advance(len(group))
    left = await components.ledger.left("", settings.ceilings, now)
    return costing.total(left)


class _Costing:
    """Adds up documents, group by group."""

    def __init__(
        self,
        components: Components,
        extractor: "LlmExtractor",
        sources: Mapping[str, DocumentSource],
        share: float | None,
        renewed_by: Configured | None,
    ) -> None:
        self._journal = components.journal
        self._state = components.state
        self._artifacts = components.artifacts
        self._renewed_by = renewed_by
        self._extractor = extractor
        self._sources = sources
        self._reading = ReadAhead(sources, components.settings.limits.file_bytes)
        self._share = share
        self._answered: set[str] = set()
        self._costs: list[DocumentCost] = []

    async def add(self, group: Sequence[_Wanted], pool: ParserPool) -> None:
        """Read, parse and cut documents, and count what they take."""
        found = await asyncio.to_thread(self._parsed, group, pool)
        chunks = await self._chunks(
            {key: outcome for key, outcome in found.items() if isinstance(outcome, ParsedDocument)}
        )
        keys = {each.document_id: self._keys(each, chunks.get(each.document_id, ())) for each in group}
        self._answered.update(await self._journal.find({key for its in keys.values() for key in its}))
        for each in group:
            self._costs.append(self._cost(each, found[each.document_id], chunks.get(each.document_id, ())))

    async def _chunks(self, parsed: Mapping[str, ParsedDocument]) -> dict[str, tuple[Chunk, ...]]:
        """The chunks that are asked about, by document: of a conversation that goes on, its new turns."""
        chunks = {key: chunks_of(key, document.pieces) for key, document in parsed.items()}
        talks = [key for key, document in parsed.items() if is_conversation(document.media_type)]
        known = await self._state.get_many(talks)
        if (configured := self._renewed_by) is not None:
            known = {key: doc for key, doc in known.items() if not extraction_differences(doc, configured)}
        keys = [doc.artifact for doc in known.values() if doc.artifact]
        previous = await asyncio.to_thread(self._artifacts.get_many, keys) if keys else {}
        for key in talks:
            doc = known.get(key)
            before, last_turn = (previous.get(doc.artifact), doc.last_extracted_turn) if doc else (None, None)
            chunks[key] = continuation(chunks[key], before, last_turn).chunks
        return chunks

    def total(self, left: int | None) -> SpendEstimate:
        """All of it."""
        worst = sum(cost.worst_micro_usd for cost in self._costs)
        return SpendEstimate(
            self._costs,
            sum(cost.n_calls for cost in self._costs),
            sum(cost.n_answered for cost in self._costs),
            worst,
            self._expected(worst),
            left,
        )

    def _parsed(
        self, group: Sequence[_Wanted], pool: ParserPool
    ) -> dict[str, ParsedDocument | ParseFailure | ReadError]:
        unread: dict[str, ReadError] = {}

        def read() -> Iterator[tuple[str, str, bytes]]:
            for each, content in self._reading.read_all(group):
                if isinstance(content, ReadError):
                    unread[each.document_id] = content
                else:
                    yield each.document_id, shown_key(each.source_uri).rsplit("/", 1)[-1], content.content

        return {**dict(pool.parse_many(read())), **unread}

    def _keys(self, wanted: _Wanted, chunks: Sequence[Chunk]) -> list[str]:
        return self._extractor.chunk_keys(self._org_of(wanted), chunks) if chunks else []

    def _cost(
        self, wanted: _Wanted, found: ParsedDocument | ParseFailure | ReadError, chunks: Sequence[Chunk]
    ) -> DocumentCost:
        if isinstance(found, ReadError):
            return DocumentCost(wanted.document_id, reason=found.reason, error=str(found))
        if isinstance(found, ParseFailure):
            return DocumentCost(wanted.document_id, reason=found.reason, error=found.detail)
        n_answered = sum(key in self._answered for key in self._keys(wanted, chunks))
        calls = self._extractor.plan(self._org_of(wanted), chunks, self._answered)
        self._answered.update(key for call in calls for key in call.chunk_keys)
        worst = sum(self._extractor.micro_usd(call.worst_case) for call in calls)
        n_tokens = sum(call.estimated_input_tokens for call in calls)
        return DocumentCost(wanted.document_id, len(calls), n_answered, n_tokens, worst, self._expected(worst))

    def _org_of(self, wanted: _Wanted) -> str:
        return self._sources[wanted.source].org_id

    def _expected(self, worst: int) -> int | None:
        return None if self._share is None else round(worst * self._share)


def _share_of_worst(report: SpendReport, model: str) -> float | None:
    """Which share of what was reserved for a model's calls they came to; None: nothing is known of it."""
    total: dict[str, SpendTotals] = {}
    for models in report.days.values():
        total = added_up(total, models)
    spent = total.get(model, SpendTotals())
    return min(1.0, spent.micro_usd / spent.estimated_micro_usd) if spent.estimated_micro_usd else None
