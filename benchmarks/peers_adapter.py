"""Puts this project beside other tools: the script the peers' benchmark runs for us.

It takes the arguments of that benchmark's `common.args()` and uses its splitter and embedding function; everything else
is what `ingest run` does, Dagster's runs, partitions and events on SQLite included. The benchmark's folder must be on
PYTHONPATH. Entries are not extracted, since no peer extracts any.
"""

import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import common
import numpy as np
from dagster._core.storage.legacy_storage import LegacyEventLogStorage  # noqa: F401 - Dagster loads it lazily

from ingest_assets.cli.output import Exit
from ingest_assets.components import Components
from ingest_assets.requests.request import Request, Watcher
from ingest_assets.runs.list_runs import ListRuns  # noqa: F401 - Dagster is loaded before the clock starts
from ingest_assets.settings import Settings
from ingest_assets.settings_sections import ChunkingSettings, SourceSettings
from resources.artifact_store.artifact import Chunk, Entry
from resources.document_source.document_ids import document_id, source_uri
from resources.document_state.take_up import Mode
from resources.embedder.embedder import Embedder, Vectors
from resources.extractor.extractor import Extractor
from resources.store.duckdb.duckdb_file import DuckDBFile  # noqa: F401 - nor is DuckDB loaded while it runs

_NAMES: dict[str, str] = {}


class SharedEmbedder(Embedder):
    """The benchmark's embedding function."""

    name = "shared"
    version = "1"
    dimension = common.DIM

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        return np.asarray(common.embed(list(texts)), dtype=np.float32)


class NotingExtractor(Extractor):
    """Finds nothing, and tells the benchmark of each document that was really parsed."""

    name = "noting"
    version = "1"

    async def extract(self, document_id: str, chunks: Sequence[Chunk]) -> tuple[Entry, ...]:
        """See Extractor."""
        del chunks
        common.note_doc(_NAMES[document_id])
        return ()


def main() -> int:
    """Ingest, then copy the rows for the benchmark's check."""
    arguments = common.args()
    common.note_time("import")
    docs, data = Path(arguments.docs).absolute(), Path(arguments.state).absolute()
    _NAMES.update(
        (document_id("default", source_uri("docs", os.fsencode(name))), name) for name in common.list_docs(docs)
    )
    settings = Settings(
        data_dir=str(data),
        sources=(SourceSettings(name="docs", uri=str(docs)),),
        chunking=ChunkingSettings(splitter="common:split" if arguments.splitter == "shared" else "markdown"),
        default_embedder="benchmarks.peers_adapter:SharedEmbedder",
        extractor="benchmarks.peers_adapter:NotingExtractor",
        base=data,
    )
    outcome = Request(Components(settings), Mode.INCREMENTAL, Watcher()).run([])
    common.note_time("done")
    _copy(data / "stores" / "default.duckdb", Path(arguments.store))
    return Exit.DONE if outcome.job is None or not outcome.job.n_failed else Exit.FAILED


def _copy(built: Path, store: Path) -> None:
    """The rows of our store as the benchmark's table."""
    import duckdb

    store.unlink(missing_ok=True)
    with (
        duckdb.connect(str(built), read_only=True, config={"memory_limit": "64MB"}) as ours,
        sqlite3.connect(store) as theirs,
    ):
        theirs.execute("CREATE TABLE chunks(id TEXT PRIMARY KEY, doc TEXT, ord INTEGER, text TEXT, embedding BLOB)")
        rows = ours.execute("SELECT chunk_id, document_id, ordinal, text FROM chunks")
        while some := rows.fetchmany(1000):
            theirs.executemany(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, NULL)",
                [(chunk_id, _NAMES[document], ordinal, text) for chunk_id, document, ordinal, text in some],
            )


if __name__ == "__main__":
    # The classes above are found by name: this file must be the module of that name, not `__main__`.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.peers_adapter import main as run

    raise SystemExit(run())
