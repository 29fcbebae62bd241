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


def check(history: list[Operation]) -> None:
    """Fail, and show the operations of the object, unless each object explains all it answered."""
    for operations in by_object(history).values():
        of_worker = operations[0].name in ("hold", "bury")
        model, initial = (models.worker, False) if of_worker else (models.document, None)
        if linearization(operations, model, initial) is None:
            pytest.fail(f"No order of these operations explains their answers:\n{shown(operations)}", pytrace=False)


class LinearizabilityContract(ABC):
    n_histories = 200

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
            for seed in range(self.n_histories):
                history = await asyncio.to_thread(record_history, openings, seed, threads)
                check(history)
                ends.update((done.name, done.returned is not None and bool(done.answer)) for done in history)
                ends.update(done.returned is None for done in history)
        assert [name for name in CHANGES if not ends[name, True]] == []
        assert ends["create", False]
        assert ends["claim", False]
        assert ends[True]
