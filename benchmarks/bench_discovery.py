"""What a discovery costs beside its listing: `python -m benchmarks.bench_discovery`, `--help` for its options.

A source of so many objects (1,000,000), made up while it is listed, with source URIs of 60 characters and versions of
about 35, and a SQLite state with as many records. Each row is a process of its own, so that its peak memory is its own;
"ratio" is its time to the time of only going through the same listing, taken in the same process right before.
"calls" counts what was asked of the state: it must not grow with the corpus where little changed.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.clock import utc_now
from resources.document_source.document_source import DocumentSource, ReadResult, SourceObject
from resources.document_source.left_out import LeftOut
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.records.backend import RecordBackend
from resources.records.record import Record, Stamp, Write
from resources.records.sqlite_backend import SqliteBackend
from sensors.discovered import Discovered
from sensors.listing import Listings
from sensors.plan import Discovery

KILO = 1_000
MEGABYTE = 1_000_000


class MadeUpSource(DocumentSource):
    """As many objects as wanted; the first `changed` have another version, the first `gone` of the rest are missing."""

    name, org_id, uri = "docs", "default", "made-up://docs"

    def __init__(self, objects: int, changed: int = 0, gone: int = 0) -> None:
        self.objects, self.changed, self.gone = objects, changed, gone

    def list_objects(
        self,
        prefix: bytes = b"",  # noqa: ARG002
        left_out: LeftOut | None = None,  # noqa: ARG002
    ) -> Iterator[SourceObject]:
        """See DocumentSource."""
        for number in range(self.objects):
            if self.changed <= number < self.changed + self.gone:
                continue
            size = 10_000 + number * 7_919 % 99_991
            time_ns = 1_700_000_000_000_000_000 + number * 7_919_000_003 % 10**15 + (number < self.changed)
            yield SourceObject(
                f"docs:reports/{number % 1000:04}/annual-report-of-department-{number:010}.pdf",
                f"{size}-{time_ns}-{1_000_000 + number}",
                size,
            )

    def key_of_place(self, place: str) -> bytes | None:
        """See DocumentSource."""
        raise NotImplementedError

    def current_version(self, source_uri: str) -> str:
        """See DocumentSource."""
        raise NotImplementedError

    def read(self, source_uri: str, max_bytes: int) -> ReadResult:
        """See DocumentSource."""
        raise NotImplementedError


class NoPartitions:
    """Dagster is measured elsewhere."""

    def add(self, document_ids: Sequence[str]) -> None:
        """See Partitions."""


class CountedBackend(SqliteBackend):
    """Counts what it is asked and how many records it gives or takes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls: Counter[str] = Counter()

    async def _read(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        self.calls["read"] += 1
        return await super()._read(kind, keys)

    async def _write(self, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]:
        self.calls["write"] += 1
        return await super()._write(kind, writes)

    async def _list(self, kind: str, after: str, limit: int, labels: Collection[str] | None) -> list[Record]:
        self.calls["list"] += 1
        return await super()._list(kind, after, limit, labels)

    async def _list_keys(self, kind: str, labels: Collection[str]) -> list[str]:
        self.calls["list_keys"] += 1
        return await super()._list_keys(kind, labels)

    async def _count_labels(self, kind: str) -> dict[str, int]:
        self.calls["count_labels"] += 1
        return await super()._count_labels(kind)


def discovery_in(folder: Path, source: DocumentSource, backend: RecordBackend, hours: float = 24) -> Discovery:
    listings = Listings(SqliteArtifactStore(folder / "artifacts.db"), backend, timedelta(hours=hours))
    return Discovery(source, RecordDocumentStateStore(backend), listings, ["default"], 0.5)


async def discover(folder: Path, source: MadeUpSource, limit: int | None, hours: float) -> tuple[Discovered, str]:
    backend = CountedBackend(folder / "state.db")
    found = await discovery_in(folder, source, backend, hours).run(NoPartitions(), utc_now, limit=limit)
    await backend.close()
    return found, ", ".join(f"{count} {name}" for name, count in sorted(backend.calls.items()))


def measure(folder: Path, source: MadeUpSource, limit: int | None, hours: float) -> dict[str, object]:
    """One row: the plain listing, then the discovery, in this process."""
    start = time.perf_counter()
    for _ in source.list_objects():
        pass
    listing = time.perf_counter() - start
    before = peak()
    start, cpu = time.perf_counter(), time.process_time()
    found, calls = asyncio.run(discover(folder, source, limit, hours))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    counts = f"{len(found.new)}/{len(found.changed)}/{len(found.vanished)}"
    times = {"s": seconds, "cpu s": cpu, "listing s": listing}
    return times | {"before MB": before, "peak MB": peak(), "found": counts, "calls": calls}


def peak() -> float:
    """The most memory this process has had, in megabytes. Linux counts it in kilobytes of 1,024 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024 / MEGABYTE


def row(name: str, folder: Path, **options: float | None) -> None:
    """Measure in a process of its own, and print."""
    command = [sys.executable, "-m", "benchmarks.bench_discovery", "--measure", str(folder), json.dumps(options)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    ratio = found["s"] / found["listing s"]
    print(
        f"{name:<42}{found['s']:>8.2f}{found['cpu s']:>7.2f}{found['listing s']:>10.2f}{ratio:>7.1f}x"
        f"{found['before MB']:>10.0f}{found['peak MB']:>9.0f}  {found['found']:<18}{found['calls']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        options = json.loads(arguments.measure[1])
        limit, hours = options.pop("limit", None), options.pop("hours", 24)
        print(json.dumps(measure(Path(arguments.measure[0]), MadeUpSource(**options), limit, hours)))
        return
    n = arguments.objects
    print(
        f"{f'{n:,} objects':<42}{'s':>8}{'cpu s':>7}{'listing s':>10}{'ratio':>8}{'before MB':>10}{'peak MB':>9}"
        f"  {'new/changed/gone':<18}calls"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row("first, at most 20,000 changes", folder, objects=n, limit=20_000)
        row("first, all the rest", folder, objects=n)
        row("nothing changed", folder, objects=n)
        row("1,000 changed", folder, objects=n, changed=KILO)
        row("1,000 gone", folder, objects=n, gone=KILO)
        row("nothing changed, every record compared", folder, objects=n, gone=KILO, hours=1e-9)


if __name__ == "__main__":
    main()
