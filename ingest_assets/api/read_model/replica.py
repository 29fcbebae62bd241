"""The read model of a state that lies elsewhere: a file of this process, kept up in the background."""

import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from ingest_assets.api.read_model import queries as sql
from ingest_assets.api.read_model.document_index import DocumentIndex
from resources.clock import utc_now
from resources.document_source.document_ids import encoded_key
from resources.document_state.document_state_store import KIND
from resources.records.backend import BackendCorruptError, BackendError, RecordBackend
from resources.records.decoding import decoded
from resources.records.record import Record
from resources.sqlite_file import SqliteFile

log = logging.getLogger(__name__)


class _Pushed(msgspec.Struct, frozen=True):
    """What of a link is looked at."""

    last_push_at: str | None = None


class _Named(msgspec.Struct, frozen=True):
    """What of a document's record never changes and is searched for, and when it was written into which store."""

    org_id: str
    source_uri: str
    links: dict[str, _Pushed] = {}


class NotBuiltError(Exception):
    """The replica has not seen the whole state yet."""


class Replica(DocumentIndex):
    """An index over a copy of the labels.

    What is open is compared every few seconds, which costs what is open; all of it now and then, which finds changes of
    documents that were never open in between (marked as stale, imported, restored).
    """

    def __init__(self, backend: RecordBackend, refresh_seconds: float, reconcile_seconds: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ingest-read-model-")
        super().__init__(SqliteFile(Path(self._folder.name) / "index.db", sql.REPLICA, synchronous="NORMAL"))
        self._backend = backend
        self._refresh_seconds = refresh_seconds
        self._reconcile_seconds = reconcile_seconds
        self._open: set[str] = set()
        self._round = 0
        self._as_of: datetime | None = None

    def as_of(self) -> datetime:
        """See DocumentIndex.

        Raises:
            NotBuiltError: it is being built.
        """
        if self._as_of is None:
            raise NotBuiltError
        return self._as_of

    async def keep_up(self) -> None:
        """Follow the state until cancelled. While it does not answer, the index grows older, and says so."""
        reconciled: float | None = None
        while True:
            begun = time.monotonic()
            try:
                if reconciled is None or begun - reconciled >= self._reconcile_seconds:
                    await self.reconcile()
                    reconciled = begun
                else:
                    await self.refresh()
            except BackendError as error:
                log.warning("The read model could not be refreshed: %s", type(error).__name__)
            await asyncio.sleep(self._refresh_seconds)

    async def refresh(self) -> None:
        """Take over what changed among the documents that are open, or were when it was last looked."""
        now = utc_now()
        said = {found.key: found.label for found in await self._backend.list_open(KIND)}
        known = await asyncio.to_thread(self._labels_of, said)
        changed = {key for key, label in said.items() if known.get(key) != label} | (self._open - said.keys())
        found = await self._backend.read_many(KIND, changed)
        await asyncio.to_thread(self._put, found.values(), changed - found.keys())
        self._open = set(said)
        self._as_of = now if self._as_of is not None else None

    async def reconcile(self) -> None:
        """Take over the whole state, and forget what is no longer in it."""
        now = utc_now()
        self._round += 1
        page: list[Record] = []
        still_open = set()
        async for record in self._backend.list_records(KIND):
            page.append(record)
            if record.open:
                still_open.add(record.key)
            if len(page) >= 1_000:  # noqa: PLR2004 - rows in one transaction
                await asyncio.to_thread(self._put, page, ())
                page = []
        await asyncio.to_thread(self._put, page, ())
        await asyncio.to_thread(self._remove_unseen)
        self._open = still_open
        self._as_of = now

    def close(self) -> None:
        """See DocumentIndex; the copy goes."""
        super().close()
        self._folder.cleanup()

    def _labels_of(self, keys: Collection[str]) -> dict[str, str]:
        return dict(self._file.connection.execute(sql.LABELS_OF, (json.dumps(list(keys)),)).fetchall())

    def _put(self, records: Iterable[Record], gone: Collection[str]) -> None:
        rows, pushes = [], []
        for record in records:
            try:
                named = decoded(self._backend.uri, KIND, record, _Named)
            except BackendCorruptError as error:
                log.warning("Document '%s' is left out of lists: %s", record.key, error)
                continue
            rows.append((record.key, named.org_id, record.label, encoded_key(named.source_uri), self._round))
            pushes += [
                (named.org_id, slug, link.last_push_at) for slug, link in named.links.items() if link.last_push_at
            ]
        with self._file.transaction() as connection:
            connection.executemany(sql.ADD_LABEL, [(label,) for label in {row[2] for row in rows}])
            connection.executemany(sql.PUT, rows)
            connection.executemany(sql.PUT_PUSH, pushes)
            connection.executemany(sql.REMOVE, [(key,) for key in gone])

    def _remove_unseen(self) -> None:
        with self._file.transaction() as connection:
            connection.execute(sql.REMOVE_UNSEEN, (self._round,))
