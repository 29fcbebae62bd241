"""A run in a process that stops itself somewhere, as if its laptop was closed; spawned, so it is importable."""

import asyncio
import signal
import threading
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from ingest_assets.parsing import Chunking, ParseLimits
from resources.clock import utc_now
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.workers import LeaseLostError, Worker
from resources.extractor.none_extractor import NoneExtractor
from resources.records.sqlite_backend import SqliteBackend
from resources.store.duckdb.duckdb_store import DuckDBStore
from tests.engine.workshop import STAMP, CountingPool, RecordedReports, Workshop

LEASE = timedelta(seconds=0.4)


def stop() -> None:
    """Stand still until somebody says to go on.

    The signal goes to this thread: sent to the process, it may reach another one first, and this one runs on a little.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class StopsInExtraction(NoneExtractor):
    """Stops when the document is read and nothing of it is written."""

    async def extract(self, document_id, chunks):
        """See Extractor."""
        stop()
        return await super().extract(document_id, chunks)


class StopsBeforeTheStore(DuckDBStore):
    """Stops after the engine has asked whether its worker lives, and before the store is opened."""

    def write(self, builds):
        """See Store."""
        stop()
        return super().write(builds)


class StopsInTheStore(DuckDBStore):
    """Stops in the middle of a transaction, with the store's file locked."""

    def _adopt_embedder(self, session):
        stop()
        super()._adopt_embedder(session)


class StopsBeforeTheLink(RecordDocumentStateStore):
    """Stops when the store is written and the record does not say so yet."""

    async def set_many(self, changes):
        """See DocumentStateStore."""
        if any(new.links for new, _ in changes):
            stop()
        return await super().set_many(changes)


STORES = {"store": StopsBeforeTheStore, "transaction": StopsInTheStore}


def run_and_stop(folder: Path, at: str, to_parent: Connection) -> None:
    """Pull what is due as a worker, and tell how that ended."""

    async def go(pool: CountingPool) -> None:
        backend = SqliteBackend(folder / "state.db")
        shop = Workshop(folder, backend, pool)
        if at == "extraction":
            shop.extractor = StopsInExtraction()
        elif at in STORES:
            shop.stores = {"s": STORES[at]("s", folder / "s.duckdb", STAMP)}
        else:
            shop.state = StopsBeforeTheLink(backend)
        worker, reporter = await Worker.register(backend, "stopped run", utc_now(), LEASE), RecordedReports()
        to_parent.send(worker.worker_id)
        try:
            await shop.engine(worker, reporter).pull(10)
        except LeaseLostError:
            to_parent.send(("lease lost", reporter.reports))
        else:
            to_parent.send(("ended", reporter.reports))
        await backend.close()

    with CountingPool(1, ParseLimits(), Chunking()) as pool:
        asyncio.run(go(pool))
