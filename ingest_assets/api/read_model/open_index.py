"""Which read model a state has."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from ingest_assets.api.read_model.document_index import DocumentIndex
from ingest_assets.api.read_model.replica import Replica
from ingest_assets.api.read_model.state_file import open_in_state_file
from ingest_assets.settings_sections import ApiSettings
from resources.records.backend import RecordBackend
from resources.records.sqlite_backend import SqliteBackend


@contextlib.asynccontextmanager
async def opened_index(backend: RecordBackend, settings: ApiSettings) -> AsyncIterator[DocumentIndex]:
    """The read model of a state, kept up while the block runs."""
    if isinstance(backend, SqliteBackend):
        await backend.create()
        index = await asyncio.to_thread(open_in_state_file, backend.path)
        try:
            yield index
        finally:
            index.close()
        return
    replica = Replica(backend, settings.refresh_seconds, settings.reconcile_seconds)
    task = asyncio.create_task(replica.keep_up())
    try:
        yield replica
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        replica.close()
