"""Calls a second to a language model, beside the bare client library against the same scripted server.

    python -m benchmarks.bench_llm

Each call carries one chunk of 1,000 characters. Bare: the library alone, as many at once, the same requests, the answer
as JSON. Ours: estimated, admitted by the gate, each call begun and its answer journaled in SQLite, entries made.
In turns, three times each; the ratio is that of the medians.
"""

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ingest_assets.engine.entry_finding import Chunked
from ingest_assets.engine.paid_entries import PaidEntries
from ingest_assets.engine.progress import Milestone
from ingest_assets.engine.purse import Purse
from resources.artifact_store.artifact import Chunk, Piece, Place, chunks_of
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.patience import Patience
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.extractor.llm.answer import answer_schema
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.extractor.llm.options import LlmOptions
from resources.extractor.llm.prompt import INSTRUCTIONS
from resources.records.sqlite_backend import SqliteBackend
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer, model_process
from tests.servers.scripted_model import Step

_CASES = ((16, 0.2, 96), (64, 1.0, 128))
_RUNS = 3
_OPENAI, _BEDROCK = "openai:gpt-4o-mini", "bedrock:anthropic.claude-3-haiku-20240307-v1:0"
_MAX_TOKENS = 512  # leaves room for one chunk a call


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, model_process(Path(folder)) as server:
        os.environ |= {**ENVIRONMENT, **server.environment()}
        print(f"{'provider':10}{'in flight':>10}{'seconds each':>14}{'bare/s':>10}{'ours/s':>10}{'ratio':>8}")
        for name, bare in ((_OPENAI, _bare_openai), (_BEDROCK, _bare_bedrock)):
            for concurrency, seconds, n_calls in _CASES:
                _compare(server, name, bare, concurrency, seconds, n_calls)


def _compare(
    server: ModelServer,
    name: str,
    bare: Callable[[list[str], int], Coroutine[Any, Any, float]],
    concurrency: int,
    seconds: float,
    n_calls: int,
) -> None:
    options = LlmOptions(concurrency=concurrency, max_tokens=_MAX_TOKENS)
    rates: dict[str, list[float]] = {"bare": [], "ours": []}
    for run in range(_RUNS):
        chunks = _chunks(n_calls, run)
        prompts = [call.prompt for call in LlmExtractor(name, options).plan("", chunks)]
        # The first calls make clients and connections; they are made before the clock starts.
        server.script(Step(times=concurrency), Step(seconds=seconds))
        rates["bare"].append(n_calls / asyncio.run(bare(prompts, concurrency)))
        server.script(Step(times=concurrency), Step(seconds=seconds))
        with tempfile.TemporaryDirectory() as folder:
            ours = _ours(Path(folder), LlmExtractor(name, options), chunks, concurrency)
            rates["ours"].append(n_calls / asyncio.run(ours))
    medians = {who: statistics.median(found) for who, found in rates.items()}
    provider = name.partition(":")[0]
    print(
        f"{provider:10}{concurrency:10}{seconds:14.1f}{medians['bare']:10.1f}{medians['ours']:10.1f}"
        f"{medians['ours'] / medians['bare']:8.2f}"
    )


def _chunks(number: int, run: int) -> tuple[Chunk, ...]:
    texts = [f"Run {run}, chunk {n}. " + "Ada Lovelace wrote notes on the engine. " * 25 for n in range(number)]
    return chunks_of("d", [Piece(text, Place(0, len(text))) for text in texts])


class _NobodyWatches:
    """A progress that nobody is told of."""

    def reaches(self, milestone: Milestone) -> None:
        """See Progress."""

    def enters(self, stage: JobStage) -> None:
        """See Progress."""

    async def estimated(self, micro_usd: int, refusal: str) -> None:
        """See Progress."""


async def _nobody_died() -> None:
    """Nothing is reserved by anybody else."""


async def _ours(folder: Path, extractor: LlmExtractor, chunks: tuple[Chunk, ...], concurrency: int) -> float:
    """Seconds, from chunks to entries, planning and reading included."""
    journal = SqliteJournal(folder / "paid.db")
    backend = SqliteBackend(folder / "state.db")
    gate = SpendGate(SpendLedger(backend), journal)

    patience = Patience(0, _nobody_died, 1, lambda: None)

    def new_purse() -> Purse:
        return Purse(gate, journal, Ceilings(per_day_micro_usd=10**12), patience, "job", "worker", extractor.model)

    paid = PaidEntries(extractor, journal, new_purse, _NobodyWatches())
    await paid.find([Chunked("first", "", _chunks(concurrency, -1))])
    start = time.perf_counter()
    [finding] = await paid.find([Chunked("d", "", chunks)])
    seconds = time.perf_counter() - start
    assert finding.entries, finding.error
    await extractor.close()
    await journal.shut()
    await backend.close()
    return seconds


async def _bare_openai(prompts: list[str], concurrency: int) -> float:
    from openai import AsyncOpenAI

    places = asyncio.Semaphore(concurrency)
    async with AsyncOpenAI(max_retries=0) as client:

        async def ask(prompt: str) -> None:
            async with places:
                reply = await client.chat.completions.create(
                    model="gpt-4o-mini",
                    messages=[{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}],
                    response_format={
                        "type": "json_schema",
                        "json_schema": {"name": "knowledge", "schema": answer_schema()},
                    },
                    temperature=0,
                    max_tokens=_MAX_TOKENS,
                )
            json.loads(reply.choices[0].message.content or "")

        await asyncio.gather(*(ask("Say something.") for _ in range(concurrency)))
        start = time.perf_counter()
        await asyncio.gather(*(ask(prompt) for prompt in prompts))
        return time.perf_counter() - start


async def _bare_bedrock(prompts: list[str], concurrency: int) -> float:
    from concurrent.futures import ThreadPoolExecutor

    import boto3
    from botocore.config import Config

    config = Config(max_pool_connections=concurrency, retries={"total_max_attempts": 1})
    client = boto3.client("bedrock-runtime", config=config)
    tool = {"toolSpec": {"name": "knowledge", "inputSchema": {"json": answer_schema()}}}

    def ask(prompt: str) -> None:
        client.converse(
            modelId=_BEDROCK.partition(":")[2],
            system=[{"text": INSTRUCTIONS}],
            messages=[{"role": "user", "content": [{"text": prompt}]}],
            toolConfig={"tools": [tool], "toolChoice": {"any": {}}},
            inferenceConfig={"temperature": 0, "maxTokens": _MAX_TOKENS},
        )

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(concurrency) as threads:
        await asyncio.gather(*(loop.run_in_executor(threads, ask, "Say something.") for _ in range(concurrency)))
        start = time.perf_counter()
        await asyncio.gather(*(loop.run_in_executor(threads, ask, prompt) for prompt in prompts))
        seconds = time.perf_counter() - start
    client.close()
    return seconds


if __name__ == "__main__":
    main()
