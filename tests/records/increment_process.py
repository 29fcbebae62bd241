"""What the other processes of the record tests do; they are spawned, so it must be importable."""

import asyncio
from pathlib import Path

from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from tests.records.contract import KIND, increment


def increment_many(path: Path, start, times: int) -> None:
    """Open the file at the same moment as the others, then add to one number."""
    start.wait()
    asyncio.run(increment(SqliteBackend(path), "n", times))


def write_for_ever(path: Path, started) -> None:
    """Write groups of records, each whole or absent, until killed."""

    async def go() -> None:
        backend = SqliteBackend(path)
        number = 0
        while True:
            writes = [Write(f"{number:06d}-{i}", b"x" * 500, None, label=str(number)) for i in range(10)]
            await backend.compare_and_set(KIND, writes)
            number += 1
            started.set()

    asyncio.run(go())
