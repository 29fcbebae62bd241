"""How long the DuckDB store takes: `python -m benchmarks.bench_store`."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from resources.artifact_store.artifact import Entry, Piece, Place, chunks_of, chunkset_hash, entry_id
from resources.embedder.embedder import EmbedderStamp
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import DocumentBuild

WORDS = tuple(f"word{number}" for number in range(2_000))


def made_up_build(number: int, n_chunks: int, dimension: int, rng: np.random.Generator) -> DocumentBuild:
    """A document of about 1,000 characters a chunk, with two entries a chunk."""
    document_id = f"document-{number:06d}"
    words = rng.choice(WORDS, size=(n_chunks, 120))
    texts = [f"{number} {ordinal} {' '.join(row)}" for ordinal, row in enumerate(words)]
    pieces = [Piece(text, Place(1000 * i, 1000 * i + 1000, ("Chapter", str(i)))) for i, text in enumerate(texts)]
    chunks = chunks_of(document_id, pieces)
    vectors = rng.standard_normal((n_chunks, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    statements = [(chunk.chunk_id, f"{text} of {chunk.text[:60]}") for chunk in chunks for text in ("one", "two")]
    entries = [
        Entry(entry_id(document_id, chunk, "statement", text), "statement", text, chunk) for chunk, text in statements
    ]
    return DocumentBuild(
        document_id=document_id,
        org_id="default",
        source="made-up",
        source_uri=f"made-up:{number}",
        title=f"Document {number}",
        fencing_token=1,
        chunkset_hash=chunkset_hash(chunks),
        chunks=chunks,
        entries=entries,
        vectors={chunk.chunk_id: vector for chunk, vector in zip(chunks, vectors, strict=True)},
    )


def made_up_builds(n_documents: int, n_chunks: int, dimension: int) -> list[DocumentBuild]:
    """`n_chunks` in all, spread evenly."""
    rng = np.random.default_rng(7)
    bounds = np.linspace(0, n_chunks, n_documents + 1).astype(int)
    return [made_up_build(i, int(bounds[i + 1] - bounds[i]), dimension, rng) for i in range(n_documents)]


def seconds(action: Callable[[], object]) -> float:
    """How long the action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@contextmanager
def empty_store(dimension: int) -> Iterator[tuple[DuckDBStore, Path]]:
    """A store that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.duckdb"
        yield DuckDBStore("bench", path, EmbedderStamp("made-up", "1", dimension)), path


def write_in_groups(store: DuckDBStore, builds: list[DocumentBuild], size: int) -> None:
    for start in range(0, len(builds), size):
        store.write(builds[start : start + size])


def bench_writing() -> None:
    builds = made_up_builds(2_000, 27_000, 64)
    with empty_store(64) as (store, path):
        grouped = seconds(lambda: write_in_groups(store, builds, 200))
        print(f"write 2,000 documents, 27,000 chunks x 64, 200 a transaction: {grouped:.2f} s")
        print(f"  file: {path.stat().st_size / 1e6:.1f} MB")
        print(f"write them again unchanged: {seconds(lambda: write_in_groups(store, builds, 200)):.2f} s")
        changed = [one_chunk_changed(build) for build in builds]
        rewrite = seconds(lambda: write_in_groups(store, changed, 200))
        print(f"write them with one chunk of 13 changed in each: {rewrite:.2f} s")
        for _ in range(4):
            write_in_groups(store, builds, 200)
            write_in_groups(store, changed, 200)
        print(f"  file after eight more such rewrites: {path.stat().st_size / 1e6:.1f} MB")
    some = builds[:100]
    with empty_store(64) as (store, _):
        single = seconds(lambda: write_in_groups(store, some, 1)) / len(some)
    print(f"one transaction a document: {single * 1e3:.0f} ms each, {single * len(builds) / grouped:.0f} times as long")


def one_chunk_changed(build: DocumentBuild) -> DocumentBuild:
    """The same document with another last chunk."""
    pieces = [Piece(chunk.text, chunk.place) for chunk in build.chunks]
    pieces[-1] = Piece(f"{pieces[-1].text} changed", pieces[-1].place)
    chunks = chunks_of(build.document_id, pieces)
    vectors = dict(build.vectors) | {chunks[-1].chunk_id: next(iter(build.vectors.values()))}
    return msgspec.structs.replace(build, chunks=chunks, vectors=vectors, chunkset_hash=chunkset_hash(chunks))


def bench_search() -> None:
    builds = made_up_builds(2_000, 50_000, 256)
    query = next(iter(builds[1234].vectors.values()))
    with empty_store(256) as (store, path):
        print(f"write 50,000 chunks x 256: {seconds(lambda: write_in_groups(store, builds, 200)):.2f} s")
        print(f"  file: {path.stat().st_size / 1e6:.1f} MB")
        times = sorted(seconds(lambda: store.search(query, 10, org_id="default")) for _ in range(20))
        print(f"search them, with open and close: median {times[10] * 1e3:.0f} ms, slowest {times[-1] * 1e3:.0f} ms")


if __name__ == "__main__":
    bench_writing()
    bench_search()
