"""Knowledge entries found by a language model, in three steps that can be taken apart.

`plan` says which calls a document takes, `execute` makes one, `entries_of` reads the answers. Between them stands
whatever counts, admits and keeps calls; `extract` is the three in a row with nothing between.
"""

import asyncio
import importlib.util
import logging
from collections.abc import Collection, Mapping, Sequence
from decimal import ROUND_CEILING
from functools import cached_property

from resources.artifact_store.artifact import Chunk, Entry
from resources.extractor.extractor import Extractor, ExtractorConfigError
from resources.extractor.llm.answer import SCHEMA_VERSION, Answer, ChunkAnswer, Usage
from resources.extractor.llm.asking import ask
from resources.extractor.llm.calling import Caller
from resources.extractor.llm.endpoint import check_openai_access
from resources.extractor.llm.entries import Found, entries_of
from resources.extractor.llm.model_error import ModelError
from resources.extractor.llm.options import LlmOptions
from resources.extractor.llm.planning import Call, Planner
from resources.extractor.llm.prices import PriceList
from resources.extractor.llm.prompt import PROMPT_VERSION

_logger = logging.getLogger(__name__)
_PACKAGES = ("pydantic_ai", "openai", "genai_prices", "toktok")


class LlmExtractor(Extractor):
    """Asks `bedrock:<model id>` or `openai:<model>` for statements, entities, relations and topics.

    Changing the model, the prompt or the schema makes extractions stale, each as a part of its own. How chunks are
    grouped, paced and priced does not.
    """

    name = "llm"
    version = "1"
    is_paid = True

    def __init__(self, model: str, options: LlmOptions | None = None) -> None:
        self.model = model
        self.options = options or LlmOptions()
        self.prices = PriceList(self.options.prices, allow_unpriced=self.options.allow_unpriced)

    @property
    def parts(self) -> Mapping[str, str]:
        """See `Extractor.parts`."""
        return {**super().parts, "model": self.model, "prompt": f"{PROMPT_VERSION} schema {SCHEMA_VERSION}"}

    def check(self) -> None:
        """See `Extractor.check`: the extra is installed, and the model has a price."""
        missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
        if missing:
            raise ExtractorConfigError(
                f"The extractor '{self.model}' needs {', '.join(missing)}. pip install 'ingest-assets[llm]'."
            )
        self.prices.cost(self.model, Usage())

    def check_access(self) -> None:
        """See `Extractor.check_access`. Credentials for Bedrock may be anywhere, so boto3 is left to look for them."""
        provider, _, model = self.model.partition(":")
        if provider == "openai":
            try:
                check_openai_access(model)
            except ModelError as error:
                raise ExtractorConfigError(f"The extractor cannot work. {error}") from error

    def micro_usd(self, usage: Usage) -> int:
        """What a call with this usage costs, in millionths of a dollar, rounded up: a ceiling must hold."""
        return int((self.prices.cost(self.model, usage) * 1_000_000).to_integral_value(ROUND_CEILING))

    def chunk_keys(self, org_id: str, chunks: Sequence[Chunk]) -> list[str]:
        """The key under which the answer to each chunk is kept: the same in every document of the org."""
        return self._planner.chunk_keys(org_id, chunks)

    def plan(self, org_id: str, chunks: Sequence[Chunk], answered: Collection[str] = ()) -> list[Call]:
        """The calls a document takes; none for chunks whose keys are `answered`. See `planning`."""
        return self._planner.plan(org_id, chunks, answered)

    async def execute(self, call: Call) -> Answer:
        """Make one call. See `Caller.execute`."""
        return await self._caller.execute(call)

    def repair(self, call: Call, problem: str) -> Call:
        """The call that asks again after an answer with a `problem`."""
        return self._planner.repair(call, problem)

    def entries_of(self, document_id: str, chunks: Sequence[Chunk], answers: Mapping[str, ChunkAnswer]) -> Found:
        """The entries of a document.

        Args:
            document_id: whose.
            chunks: all its chunks.
            answers: what was found, by chunk id.
        """
        found = entries_of(document_id, chunks, [answers[chunk.chunk_id] for chunk in chunks])
        if found.n_unquoted:
            _logger.info("%s: %d findings dropped that are not in their chunk", document_id, found.n_unquoted)
        return found

    async def extract(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[Entry, ...]:
        """See `Extractor.extract`."""
        calls = self.plan("", chunks)
        # A failed call does not cancel the others: they may have been paid for, and say the same next time.
        answered = await asyncio.gather(
            *(ask(call, self.execute, self.repair) for call in calls), return_exceptions=True
        )
        by_key: dict[str, ChunkAnswer] = {}
        for answer in answered:
            if isinstance(answer, BaseException):
                raise answer
            by_key.update(answer.by_chunk)
        keys = self.chunk_keys("", chunks)
        answers = {chunk.chunk_id: by_key[key] for chunk, key in zip(chunks, keys, strict=True)}
        return self.entries_of(document_id, chunks, answers).entries

    async def close(self) -> None:
        """See `Extractor.close`."""
        if "_caller" in self.__dict__:
            await self.__dict__.pop("_caller").close()

    @cached_property
    def _planner(self) -> Planner:
        return Planner(self.model, self.options)

    @cached_property
    def _caller(self) -> Caller:
        return Caller(self.model, self.options)
