"""What many processes at one backend keep: subclass `ManyProcessesContract`, give it a URI they can open."""

import multiprocessing
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from resources.records.uri import open_backend
from tests.records.contract import KIND
from tests.records.increment_process import increment_many

SPAWN = multiprocessing.get_context("spawn")


def run_together(target, n_processes: int, uri: str, *args, seconds: float) -> None:
    """Run a function in many processes that begin at the same moment; each must end well within a time."""
    together = SPAWN.Barrier(n_processes)
    processes = [SPAWN.Process(target=target, args=(uri, together, *args), daemon=True) for _ in range(n_processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(seconds)
    ended = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    assert ended == [0] * n_processes


class ManyProcessesContract(ABC):
    N_PROCESSES = 8
    INCREMENTS = 250  # of each process; fewer where a server is slow
    SECONDS = 120.0

    @pytest.fixture
    @abstractmethod
    def uri(self, tmp_path) -> str:
        """Where nothing was written yet; a relative path in it counts from the root."""

    async def test_many_processes_lose_no_change(self, uri):
        """Processes that open new records at once and add to one number lose none of their additions."""
        run_together(increment_many, self.N_PROCESSES, uri, self.INCREMENTS, seconds=self.SECONDS)
        backend = open_backend(uri, Path("/"))
        found = await backend.read(KIND, "n")
        await backend.close()
        total = self.N_PROCESSES * self.INCREMENTS
        assert (int(found.value), found.stamp.version) == (total, total)
