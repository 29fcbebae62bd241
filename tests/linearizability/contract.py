"""What every backend's histories keep: subclass `LinearizabilityContract`, give it a backend."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from resources.records.backend import RecordBackend
from tests.linearizability import models
from tests.linearizability.checker import Operation, by_object, linearization, shown
from tests.linearizability.clients import N_CLIENTS, record_history

CHANGES = ("create", "set", "claim", "release", "take over", "hold", "bury")
UNANSWERED = ("any", None)
# What must have happened before histories are worth anything: changes that succeeded, and some that did not.
WANTED = (*((name, True) for name in CHANGES), ("create", False), ("claim", False), UNANSWERED)
MOST_HISTORIES = 400  # a few may not have each by chance; so many must


def check(history: list[Operation]) -> None:
    """Fail, and show the operations of the object, unless each object explains all it answered."""
    for operations in by_object(history).values():
        of_worker = operations[0].name in ("hold", "bury")
        model, initial = (models.worker, False) if of_worker else (models.document, None)
        if linearization(operations, model, initial) is None:
            pytest.fail(f"No order of these operations explains their answers:\n{shown(operations)}", pytrace=False)


class LinearizabilityContract(ABC):
    n_histories = 200  # and as many more as it takes until each change has succeeded once

    @pytest.fixture
    @abstractmethod
    def backend(self, tmp_path) -> RecordBackend:
        """A backend in which nothing was written yet, safe for many threads, each with a loop of its own."""

    @pytest.fixture
    def openings(self, backend) -> list[RecordBackend]:
        """The same records as several processes open them; clients share them out."""
        return [backend]

    async def test_histories_are_linearizable(self, openings):
        """What eight clients are answered over a bad line could have been answered to one after the other.

        The histories are worth it: every kind of change succeeds in some, and in some one is refused or never answered.
        """
        ends = Counter()
        with ThreadPoolExecutor(N_CLIENTS) as threads:
            for seed in range(MOST_HISTORIES):
                if seed >= self.n_histories and all(ends[wanted] for wanted in WANTED):
                    break
                history = await asyncio.to_thread(record_history, openings, seed, threads)
                check(history)
                ends.update((done.name, done.returned is not None and bool(done.answer)) for done in history)
                ends.update(UNANSWERED for done in history if done.returned is None)
        assert [wanted for wanted in WANTED if not ends[wanted]] == []
