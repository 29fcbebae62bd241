"""What the other processes of the record tests do; they are spawned, so it must be importable."""

import asyncio
from pathlib import Path

from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from resources.records.uri import open_backend
from tests.records.contract import KIND, increment


def increment_many(uri: str, together, times: int) -> None:
    """Open the records at the same moment as the others, then add to one number."""

    async def go() -> None:
        together.wait()
        backend = open_backend(uri, Path("/"))
        await increment(backend, "n", times)
        await backend.close()

    asyncio.run(go())


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
