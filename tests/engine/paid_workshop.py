"""A workshop that pays a scripted model, and processes of it that kill themselves; spawned, so it is importable."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest_assets.engine.entry_finding import EntryFinder
from ingest_assets.engine.paid_entries import PaidEntries
from ingest_assets.engine.purse import Purse
from ingest_assets.parsing import Chunking, ParseLimits
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.artifact_store.paid_results.open_journal import open_journal
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.document_state.workers import Worker
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.extractor.llm.options import LlmOptions
from resources.records.uri import open_backend
from tests.engine.workshop import CONFIG_PARTS, CountingPool, RecordedReports, Workshop
from tests.spending.spending import NO_PATIENCE

MODEL = "openai:gpt-4o-mini"
TURNS_OF_A_CALL = 4
# Turns of this test take an answer of at most 512 tokens each by themselves.
OPTIONS = LlmOptions(max_tokens=1024)
# Where a run may die, and after how many times it was there. Before and after each durable step of a conversation's
# second call, and around the end.
DEATHS = [
    ("execute", "before", 2), ("execute", "after", 2), ("record", "before", 2), ("record", "after", 2),
    ("put_many", "before", 2), ("put_many", "after", 2), ("publish", "before", 2), ("publish", "after", 2),
    ("complete", "before", 1), ("complete", "after", 1), ("told", "before", 1), ("told", "after", 1),
]  # fmt: skip


class Death:
    """Kills this process before or after the n-th time that something is done."""

    def __init__(self, what: str = "", when: str = "", times: int = 0) -> None:
        self._at = (what, when, times)
        self._seen: Counter[tuple[str, str]] = Counter()

    def passes(self, what: str, when: str) -> None:
        """Die here, or not."""
        self._seen[what, when] += 1
        if (what, when, self._seen[what, when]) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


class PaidWorkshop(Workshop):
    """A workshop whose entries are paid for, each durable step of which `death` may be."""

    def __init__(
        self,
        folder: Path,
        state: str,
        artifacts: str,
        pool: CountingPool,
        model: str = MODEL,
        death: Death | None = None,
    ) -> None:
        super().__init__(folder, open_backend(state, folder), pool)
        self.death = death or Death()
        self.artifacts = open_artifact_store(artifacts, folder)
        self.journal = open_journal(artifacts, folder)
        self.gate = SpendGate(SpendLedger(self.backend), self.journal)
        self.llm = LlmExtractor(model, OPTIONS)
        self.config_parts = {**CONFIG_PARTS, **self.llm.parts}
        self._around(self.llm, "execute")
        self._around(self.journal, "record")
        self._around_put_many()
        self._around_set_many()

    def entries(self, worker: Worker, reporter: RecordedReports) -> EntryFinder:
        """See Workshop."""

        def new_purse() -> Purse:
            return Purse(self.gate, self.journal, Ceilings(), NO_PATIENCE, "job", worker.worker_id, self.llm.model)

        return PaidEntries(self.llm, self.journal, new_purse, reporter)

    async def memories(self, key: str) -> dict[str, str]:
        """The chunk of each memory of a conversation, by the memory's words."""
        [artifact] = self.artifacts.get_many([(await self.doc(key)).artifact]).values()
        found = [(entry.text, entry.chunk_id) for entry in artifact.entries if entry.kind == "memory"]
        assert len(found) == len(dict(found))
        return dict(found)

    async def close(self) -> None:
        """Let go of everything."""
        await self.llm.close()
        await self.journal.shut()
        await self.backend.close()

    def _around(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        async def mortal(*arguments: Any) -> Any:
            self.death.passes(name, "before")
            result = await original(*arguments)
            self.death.passes(name, "after")
            return result

        setattr(owner, name, mortal)

    def _around_put_many(self) -> None:
        original = self.artifacts.put_many

        def mortal(artifacts: Any) -> Any:
            self.death.passes("put_many", "before")
            keys = original(artifacts)
            self.death.passes("put_many", "after")
            return keys

        self.artifacts.put_many = mortal  # type: ignore[method-assign]

    def _around_set_many(self) -> None:
        original = self.state.set_many

        async def mortal(changes: Any) -> Any:
            what = _kind_of(changes)
            self.death.passes(what, "before")
            stored = await original(changes)
            self.death.passes(what, "after")
            return stored

        self.state.set_many = mortal  # type: ignore[method-assign]


def _kind_of(changes: Sequence[Any]) -> str:
    """Whether records are claimed, published in part or whole, or completed."""
    [new, _] = changes[0]
    if new.claim is None:
        return "complete"
    return "publish" if new.artifact else "claim"


class MortalReports(RecordedReports):
    """Reports that death may come before or after."""

    def __init__(self, death: Death) -> None:
        super().__init__()
        self._death = death

    async def group_done(self, reports: Any) -> None:
        """See Reporter."""
        self._death.passes("told", "before")
        await super().group_done(reports)
        self._death.passes("told", "after")


def turns(n: int, first: int = 0) -> list[dict[str, str]]:
    """Turns of a conversation, each with one thing to remember of its own and one that is said in every one."""
    return [
        {"speaker": "Ann" if turn % 2 else "Bob", "content": f"Fact number {turn} is new. We like tea."}
        for turn in range(first, first + n)
    ]


def transcript(n: int) -> str:
    """A conversation of so many turns."""
    return json.dumps({"turns": turns(n)})


def run_and_die(
    folder: Path, state: str, artifacts: str, at: tuple[str, str, int], environment: dict[str, str]
) -> None:
    """Pull what is due, and die by the way."""
    os.environ.update(environment)

    async def go(pool: CountingPool) -> None:
        death = Death(*at)
        shop = PaidWorkshop(folder, state, artifacts, pool, death=death)
        worker = await shop.worker("mortal run")
        await shop.engine(worker, MortalReports(death)).pull(10)
        await shop.close()

    with CountingPool(1, ParseLimits(), Chunking()) as pool:
        asyncio.run(go(pool))
