"""The HTTP API over a large state: lists and filters alone, then fifty people reading while two runs write.

    python -m benchmarks.bench_api [--documents N] [--seconds S] [--dynamodb]

Each of the fifty asks once a second for a page, a filter, a count or a record, in turn. Times are of whole answers, as
a client on the same machine sees them.
"""

import argparse
import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from benchmarks.bench_state_servers import load
from resources.records.uri import open_backend
from tests.servers.dynamodb_server import dynamodb_server
from tests.servers.fixtures import ENVIRONMENT

INGEST = Path(sys.executable).with_name("ingest")
TOKEN = "a token for a benchmark on loopback"
CLIENTS = 50
DOCUMENTS_OF_A_RUN = 6_000
ASKED = {
    "first page": "/api/documents",
    "filter by status": "/api/documents?status=FAILED",
    "filter by reason": "/api/documents?reason=malformed",
    "filter by state in a store": "/api/documents?state=Ingested&store=default",
    "filter that nothing passes": "/api/documents?state=Stale",
    "name that few have": "/api/documents?text=0000099",
    "name that nothing has": "/api/documents?text=nowhere",
    "name and status": "/api/documents?text=quarterly&status=FAILED",
    "counts": "/api/documents/counts",
    "counts of a name": "/api/documents/counts?text=overview",
    "stores": "/api/stores",
    "metrics": "/metrics",
    "page: library": "/",
    "page: library of a filter": "/?status=FAILED&source=",
    "page: library of a name": "/?text=overview",
    "page: stores": "/stores",
}


def configure(root: Path, state: str) -> dict[str, str]:
    """A project with two folders of small documents, and the environment of its commands."""
    for folder in ("left", "right"):
        (root / folder).mkdir()
        for number in range(DOCUMENTS_OF_A_RUN):
            (root / folder / f"{number:04d}.md").write_text(
                f"# Report {number}\n\nThe pump of {folder} ran {number} hours."
            )
    (root / "ingest.toml").write_text(
        f'document_state_store = "{state}"\ndefault_embedder = "hash"\n[api]\nrequests_per_minute = 1000000\n'
        '[[sources]]\nname = "left"\nuri = "left"\n[[sources]]\nname = "right"\nuri = "right"\n'
    )
    return {**os.environ, "INGEST_API_TOKEN": TOKEN}


@contextmanager
def served(root: Path, environment: dict[str, str]) -> Iterator[httpx.Client]:
    """The server, from its first answer on."""
    command = [str(INGEST), "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        begun = time.perf_counter()
        url = process.stdout.readline().split()[2].rstrip(".")
        with httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            while client.get("/api/documents?limit=1").status_code != 200:
                time.sleep(0.2)
            print(f"serving, the read model made: {time.perf_counter() - begun:.1f} s")
            yield client
        process.terminate()


def alone(client: httpx.Client) -> None:
    """Each question by itself: the median and the longest of ten."""
    for name, path in ASKED.items():
        times = []
        for _ in range(10):
            begun = time.perf_counter()
            client.get(path).raise_for_status()
            times.append(time.perf_counter() - begun)
        print(f"{name:28} median {statistics.median(times) * 1e3:6.1f} ms, longest {max(times) * 1e3:6.1f} ms")


async def together(url: str, paths: list[str], seconds: float) -> tuple[list[float], int]:
    """Fifty clients, a request a second each: the time of each answer, and how many were errors."""
    times: list[float] = []
    errors = 0
    turn = itertools.cycle(paths)
    until = time.perf_counter() + seconds
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def one(client: httpx.AsyncClient, first: float) -> None:
        nonlocal errors
        await asyncio.sleep(first)
        while (begun := time.perf_counter()) < until:
            try:
                answer = await client.get(next(turn))
                errors += answer.status_code >= 400
            except httpx.HTTPError:
                errors += 1
            times.append(time.perf_counter() - begun)
            await asyncio.sleep(max(0.0, 1 - (time.perf_counter() - begun)))

    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=60, headers=headers, limits=limits) as client:
        await asyncio.gather(*(one(client, number / CLIENTS) for number in range(CLIENTS)))
    return times, errors


def while_runs_write(root: Path, environment: dict[str, str], client: httpx.Client, seconds: float) -> None:
    """Fifty clients beside two runs."""
    page = client.get("/api/documents").json()["documents"]
    paths = ["/api/documents", "/api/documents?status=FAILED", "/api/documents/counts"]
    paths += [f"/api/documents/{doc['documentId']}" for doc in page[:9]]
    runs = [
        subprocess.Popen([str(INGEST), "run", folder, "--json"], cwd=root, env=environment, stdout=subprocess.DEVNULL)
        for folder in ("left", "right")
    ]
    time.sleep(2)
    times, errors = asyncio.run(together(str(client.base_url), paths, seconds))
    writing = sum(run.poll() is None for run in runs)
    for run in runs:
        run.wait()
    percentile = statistics.quantiles(times, n=20)[18]
    print(
        f"{CLIENTS} clients, {len(times)} answers, {errors} errors: median {statistics.median(times) * 1e3:.1f} ms, "
        f"95th percentile {percentile * 1e3:.1f} ms; runs still writing at the end: {writing} of 2, "
        f"exit codes {[run.returncode for run in runs]}"
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--dynamodb", action="store_true", help="the same state in DynamoDB Local")
    options = parser.parse_args()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        state = "sqlite:///state.db"
        if options.dynamodb:
            (root / "server").mkdir()
            os.environ |= ENVIRONMENT
            state = f"dynamodb://state?endpoint_url={stack.enter_context(dynamodb_server(root / 'server'))}"
        environment = configure(root, state)
        asyncio.run(fill(state, root, options.documents))
        client = stack.enter_context(served(root, environment))
        print(f"{options.documents:,} documents in {state.partition(':')[0]}, load {os.getloadavg()[0]:.1f}")
        alone(client)
        if not options.dynamodb:
            while_runs_write(root, environment, client, options.seconds)


async def fill(state: str, root: Path, n_documents: int) -> None:
    """Make the state."""
    backend = open_backend(state, root)
    await backend.create()
    await load(backend, n_documents)
    await backend.close()


if __name__ == "__main__":
    main()
