"""The state on S3 and DynamoDB: what it costs in requests, bytes and time.

    python -m benchmarks.bench_state_servers [s3] [dynamodb] [--documents N …]

SeaweedFS and DynamoDB Local are started on loopback for it. Requests and bytes are counted by a proxy in between, which
costs time of its own: times are taken without it where it says so. Figures for two sizes stand beside each other: what
costs what is open or changed, and not what there is, has the same number in both.
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

from benchmarks.state_corpus import NOW, built, document, extracted
from resources.aws.client import open_client
from resources.aws.location import AwsLocation
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import Phase
from resources.document_state.workers import Worker
from resources.records.backend import RecordBackend
from resources.records.uri import open_backend
from tests.servers.dynamodb_server import dynamodb_server
from tests.servers.fault_proxy import FaultProxy
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.seaweedfs_server import seaweedfs_server

BUCKET = "state"
LATER = NOW + timedelta(days=30)
A_RUN = 1_000
GROUP = 200
CHUNK = 2_000


async def load(backend: RecordBackend, n: int) -> None:
    """Write n documents, those that lie together one after the other."""
    state = RecordDocumentStateStore(backend)
    docs = {doc.document_id: doc for doc in map(document, range(n))}
    ordered = state.in_parts(docs)
    for first in range(0, n, CHUNK):
        assert None not in await state.set_many([(docs[key], None) for key in ordered[first : first + CHUNK]])


async def way_of(backend: RecordBackend, choose: Callable[[int], Awaitable[Sequence[str]]]) -> int:
    """What a run writes of its documents, in the order the engine does: hold, claim, extracted, built, let go."""
    state = RecordDocumentStateStore(backend)
    worker = await Worker.register(backend, "run", NOW)
    done = 0
    while done < A_RUN:
        docs = list((await state.get_many(await choose(GROUP))).values())
        if not docs:
            raise ValueError(f"Only {done} documents are due: choose a larger size.")
        await worker.hold([doc.document_id for doc in docs])
        for step in (
            lambda doc: transitions.claimed(doc, worker.worker_id, "run", NOW, extract=True),
            extracted,
            built,
        ):
            stored = await state.set_many([(step(doc), doc) for doc in docs])
            docs = [doc for doc in stored if doc is not None]
        await worker.hold(())
        done += len(docs)
    await worker.end()
    return done


def due(backend: RecordBackend) -> Callable[[int], Awaitable[Sequence[str]]]:
    """As a pull run chooses: what is due and lies together."""
    return lambda n: backend.list_due_together("document", LATER, n, "worker")


def anywhere(backend: RecordBackend, total: int) -> Callable[[int], Awaitable[Sequence[str]]]:
    """As a list run chooses: documents that lie anywhere, in the order that is cheapest."""
    chosen = [document(number).document_id for number in random.Random(1).sample(range(total), A_RUN)]
    groups = iter(backend.in_parts("document", chosen))

    async def next_group(n: int) -> Sequence[str]:
        return [key for _, key in zip(range(n), groups, strict=False)]

    return next_group


async def counted(name: str, proxy: FaultProxy, call: Callable[[], Awaitable[object]], per: int = 1) -> None:
    """Do something and print what it cost: requests and bytes each of `per`, and seconds in all."""
    proxy.reset_traffic()
    start = time.perf_counter()
    await call()
    seconds = time.perf_counter() - start
    requests = sum(seen.requests for seen in proxy.traffic.values())
    sent = sum(seen.sent for seen in proxy.traffic.values())
    received = sum(seen.received for seen in proxy.traffic.values())
    operations = ", ".join(f"{name} {seen.requests}" for name, seen in sorted(proxy.traffic.items()))
    each = f"{requests / per:9.2f} requests {sent / per / 1000:9.2f} KB sent {received / per / 1000:9.2f} KB received"
    print(f"{name:44}{each}{seconds:8.2f} s   {operations}")


def seconds_to_open(uri: str) -> float:
    """How long a new process takes to list what is due: it knows nothing of the store."""
    code = (
        "import asyncio, time, sys; from pathlib import Path; from datetime import datetime, UTC\n"
        "from resources.records.uri import open_backend; import boto3\n"
        "start = time.perf_counter(); backend = open_backend(sys.argv[1], Path())\n"
        "asyncio.run(backend.list_due('document', datetime(2030, 1, 1, tzinfo=UTC), 1000))\n"
        "print(time.perf_counter() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code, uri], capture_output=True, text=True, check=True)
    return float(done.stdout)


def make_bucket(url: str) -> None:
    """Make the bucket of the state."""
    open_client(AwsLocation("s3", BUCKET, endpoint_url=url)).create_bucket(Bucket=BUCKET)


async def bench_s3(server: str, proxy: FaultProxy, n: int) -> None:
    """Print S3's table for one size."""
    print(f"\nS3 (SeaweedFS), {n:,} documents in 64 shards")
    path = f"s3://{BUCKET}/{n}"
    backend = open_backend(f"{path}?endpoint_url={proxy.url}", Path())
    state = RecordDocumentStateStore(backend)
    await counted("load, each document", proxy, lambda: load(backend, n), n)
    times = [seconds_to_open(f"{path}?endpoint_url={server}") for _ in range(5)]
    print(f"{'open and list what is due, new process':44}{statistics.median(times):9.2f} s without the proxy")
    await counted("list incomplete, nothing changed", proxy, lambda: state.list_incomplete(Phase.BUILD))
    await counted("pull run of 1,000, each document", proxy, lambda: way_of(backend, due(backend)), A_RUN)
    scattered = anywhere(backend, n)
    await counted("1,000 lying anywhere, each", proxy, lambda: way_of(backend, scattered), A_RUN)
    await backend.close()


async def bench_dynamodb(server: str, proxy: FaultProxy, n: int) -> None:
    """Print DynamoDB's table for one size."""
    print(f"\nDynamoDB (Local), {n:,} documents")
    direct = open_backend(f"dynamodb://state-{n}?endpoint_url={server}", Path())
    await direct.create()
    start = time.perf_counter()
    await load(direct, n)
    print(f"{'load':44}{time.perf_counter() - start:9.2f} s without the proxy")
    await direct.close()
    backend = open_backend(f"dynamodb://state-{n}?endpoint_url={proxy.url}", Path())
    state = RecordDocumentStateStore(backend)
    await counted("first 100 due", proxy, lambda: state.list_due(LATER, 100))
    await counted("first 1,000 due", proxy, lambda: state.list_due(LATER, 1_000))
    n_incomplete = len(await state.list_incomplete(Phase.BUILD))
    thousands = max(1, n_incomplete // 1_000)
    what = f"list incomplete ({n_incomplete:,}), each 1,000"
    await counted(what, proxy, lambda: state.list_incomplete(Phase.BUILD), thousands)
    await counted("pull run of 1,000, each document", proxy, lambda: way_of(backend, due(backend)), A_RUN)
    await counted("counts (reads the whole table)", proxy, state.counts)
    await backend.close()


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="?", choices=["both", "s3", "dynamodb"], default="both")
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    if options.which != "dynamodb":
        with tempfile.TemporaryDirectory() as folder, seaweedfs_server(Path(folder)) as server:
            make_bucket(server.url)
            for n in options.documents:
                with FaultProxy(server.url) as proxy:
                    asyncio.run(bench_s3(server.url, proxy, n))
    if options.which != "s3":
        with tempfile.TemporaryDirectory() as folder, dynamodb_server(Path(folder)) as url:
            for n in options.documents:
                with FaultProxy(url) as proxy:
                    asyncio.run(bench_dynamodb(url, proxy, n))


if __name__ == "__main__":
    main()
