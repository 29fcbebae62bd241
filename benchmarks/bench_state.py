"""The state store at size: `python -m benchmarks.bench_state`, `--help` for its options.

On SQLite a million documents, one in five incomplete, beside the same rows through the bare driver. Figures of one
table come from one process, one after the other, so that their ratio holds on a noisy machine.
"""

import argparse
import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from benchmarks.state_corpus import NOW, discovered, document
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import DocStatus, Phase
from resources.records.sqlite_backend import SqliteBackend

CHUNK = 2_000
CLAIMED = 1_000
LATER = NOW + timedelta(days=30)


async def timed(call: Callable[[], Awaitable[object]], repeat: int = 5) -> float:
    """Median seconds of a call."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


async def load(
    state: RecordDocumentStateStore, n: int, make: Callable[[int], DocStatus] = document
) -> tuple[float, float]:
    """Write n documents; seconds of writing, and of making them up."""
    making = writing = 0.0
    for first in range(0, n, CHUNK):
        start = time.perf_counter()
        docs = [make(number) for number in range(first, min(first + CHUNK, n))]
        made = time.perf_counter()
        stored = await state.set_many([(doc, None) for doc in docs])
        writing += time.perf_counter() - made
        making += made - start
        assert None not in stored
    return writing, making


def load_barely(path: Path, rows: list[tuple[object, ...]]) -> float:
    """The same rows into the same tables through the driver alone; seconds."""
    connection = sqlite3.connect(path, isolation_level=None)
    start = time.perf_counter()
    for first in range(0, len(rows), CHUNK):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows[first : first + CHUNK])
        connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    connection.close()
    return seconds


async def claim(state: RecordDocumentStateStore, n: int) -> None:
    """Claim the n longest due, and give them back."""
    docs = list((await state.get_many(await state.list_due(LATER, n))).values())
    held = await state.set_many([(transitions.claimed(doc, "w", "r", NOW, extract=True), doc) for doc in docs])
    assert None not in held


async def bench_sqlite(n: int) -> None:
    """Print SQLite's table."""
    with tempfile.TemporaryDirectory() as folder:
        new = SqliteBackend(Path(folder) / "new.db")
        first, _ = await load(RecordDocumentStateStore(new), n, discovered)
        await new.close()
        new.path.unlink()
        os.sync()  # a gigabyte still on its way to the disk would be counted in what comes next
        path = Path(folder) / "state.db"
        backend = SqliteBackend(path)
        state = RecordDocumentStateStore(backend)
        writing, making = await load(state, n)
        print(f"\nSQLite, {n:,} documents, {path.stat().st_size / 1e6:,.0f} MB (making them up took {making:.1f} s)")
        os.sync()
        sample = sqlite3.connect(path).execute("SELECT * FROM records LIMIT 100000").fetchall()
        bare = SqliteBackend(Path(folder) / "bare.db")
        await bare.create()
        await bare.close()
        barely = load_barely(bare.path, sample)
        each, bare_each = writing / n * 1e6, barely / len(sample) * 1e6
        print(f"{'load':34}{writing:9.2f} s   {each:6.1f} us each, {each / bare_each:.1f} of the bare driver")
        print(f"{'  the bare driver, 100,000 rows':34}{barely:9.2f} s   {bare_each:6.1f} us each")
        print(f"{'  as a first discovery has them':34}{first:9.2f} s   {first / n * 1e6:6.1f} us each")
        rows: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("first 1,000 due", lambda: state.list_due(LATER, CLAIMED)),
            ("all incomplete", lambda: state.list_incomplete(Phase.EXTRACTION)),
            ("counts", state.counts),
            ("claiming 1,000", lambda: claim(state, CLAIMED)),
        ]
        for name, call in rows:
            print(f"{name:34}{await timed(call) * 1000:9.2f} ms")
        incomplete = await state.list_incomplete(Phase.EXTRACTION)
        print(f"{len(incomplete):,} are incomplete")
        await backend.close()


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000, help="in SQLite")
    options = parser.parse_args()
    asyncio.run(bench_sqlite(options.documents))


if __name__ == "__main__":
    main()
