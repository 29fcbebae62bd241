"""Paid results in one SQLite file: one machine, many processes.

A file of its own beside the artifacts': a call that is about to be sent never waits for a group of artifacts to be
written.
"""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results import sqlite_queries as sql
from resources.artifact_store.paid_results.call_log import Call, CallLog, pack_log, unpack_log
from resources.artifact_store.paid_results.group_commit import GroupCommit
from resources.artifact_store.paid_results.log_change import (
    LogChange,
    Outcome,
    apply_all,
    beginning,
    closing,
    opening,
    paying,
    sealing,
)
from resources.artifact_store.paid_results.paid_result import (
    Answer,
    KeptTotal,
    PaidResult,
    ResultSelection,
    pack,
    results_of,
    unpack,
)
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.usage import Usage
from resources.records.microseconds import to_micros
from resources.sqlite_file import NewerFormatError, SqliteFile


class _Change(NamedTuple):
    """A change of a log, and what is kept in the same transaction: results, and (document, key) uses."""

    log: LogChange
    results: Sequence[PaidResult] = ()
    uses: Sequence[tuple[str, str]] = ()


class SqliteJournal(PaidResultJournal):
    """Each commit is synced: an answer that was paid for outlives a power cut."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened before it is used."""
        self.path = path
        self._file = SqliteFile(path, sql.MIGRATIONS, synchronous="FULL")
        self._group: GroupCommit[_Change, CallLog | None] = GroupCommit(self._commit)

    async def find(self, keys: Collection[str]) -> dict[str, PaidResult]:
        """See PaidResultJournal."""
        with self._errors():
            rows = self._file.reading.execute(sql.FIND, (json.dumps(list(keys)),)).fetchall()
        found = ((key, unpack(key, body)) for key, body in rows)
        return {key: result for key, result in found if result is not None}

    async def adopt(self, document_id: str, keys: Collection[str]) -> None:
        """See PaidResultJournal."""
        with self._errors(), self._file.transaction() as connection:
            connection.executemany(sql.USE, [(document_id, key) for key in keys])

    async def open_log(self, log: CallLog) -> None:
        """See PaidResultJournal."""
        await self._group.commit(_Change(opening(log)))

    async def begin(self, reservation_id: str, calls: Sequence[Call]) -> None:
        """See PaidResultJournal."""
        await self._group.commit(_Change(beginning(reservation_id, calls)))

    async def record(
        self, reservation_id: str, call: Call, answers: Sequence[Answer], usage: Usage, now: datetime
    ) -> dict[str, PaidResult]:
        """See PaidResultJournal."""
        results = results_of(call, reservation_id, answers, usage, now)
        uses = [(document_id, answer.key) for answer in answers for document_id in answer.document_ids]
        await self._group.commit(_Change(paying(reservation_id, call.call_id, usage), results, uses))
        return await self.find([answer.key for answer in answers])

    async def failed(self, reservation_id: str, call_id: str, billed: Usage) -> None:
        """See PaidResultJournal."""
        await self._group.commit(_Change(paying(reservation_id, call_id, billed)))

    async def seal(self, reservation_id: str) -> CallLog | None:
        """See PaidResultJournal."""
        return await self._group.commit(_Change(sealing(reservation_id)))

    async def close(self, reservation_id: str) -> None:
        """See PaidResultJournal."""
        await self._group.commit(_Change(closing(reservation_id)))

    async def logs(self) -> list[CallLog]:
        """See PaidResultJournal."""
        with self._errors():
            rows = self._file.reading.execute(sql.READ_LOGS).fetchall()
        return [log for (body,) in rows if (log := unpack_log(body)) is not None]

    async def forget(self, document_id: str) -> int:
        """See PaidResultJournal."""
        if not self.path.exists():
            return 0  # nothing was ever paid for, and it need not be made to say so
        with self._errors(), self._file.transaction() as connection:
            removed = connection.execute(sql.FORGET_RESULTS, {"document_id": document_id}).rowcount
            connection.execute(sql.FORGET_USES, {"document_id": document_id})
        return removed

    async def totals(self, selection: ResultSelection) -> list[KeptTotal]:
        """See PaidResultJournal."""
        with self._errors():
            return _totals(self._file.reading, sql.TOTALS, _parameters(selection))

    async def prune(self, selection: ResultSelection) -> list[KeptTotal]:
        """See PaidResultJournal."""
        chosen = _parameters(selection)
        with self._errors(), self._file.transaction() as connection:
            totals = _totals(connection, sql.PRUNABLE, chosen)
            connection.execute(sql.PRUNE, chosen)
            connection.execute(sql.PRUNE_USES)
        return totals

    async def shut(self) -> None:
        """See PaidResultJournal."""
        await asyncio.to_thread(self._group.shut)
        self._file.close()

    def _commit(self, changes: Sequence[_Change]) -> list[Outcome]:
        """All changes in one transaction, those of each log in their order."""
        with self._errors(), self._file.transaction() as connection:
            for change in changes:
                _keep(connection, change)
            places: dict[str, list[int]] = {}
            for place, change in enumerate(changes):
                places.setdefault(change.log.reservation_id, []).append(place)
            outcomes: list[Outcome] = [None] * len(changes)
            for reservation_id, its in places.items():
                became = _change_log(connection, reservation_id, [changes[place].log for place in its])
                for place, outcome in zip(its, became, strict=True):
                    outcomes[place] = outcome
        return outcomes

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, NewerFormatError) as error:
            raise ArtifactStoreError(f"Paid results {self.path}: {error}.") from error


def _keep(connection: sqlite3.Connection, change: _Change) -> None:
    """Keep results, unless a whole one is there: the first one stands."""
    for result in change.results:
        row = connection.execute(sql.BODY, (result.key,)).fetchone()
        if row is None or unpack(result.key, row[0]) is None:
            usage = msgspec.structs.astuple(result.usage)
            connection.execute(
                sql.KEEP,
                (
                    result.key,
                    result.org_id,
                    result.model,
                    to_micros(result.at),
                    result.reservation_id,
                    *usage,
                    pack(result),
                ),
            )
    connection.executemany(sql.USE, change.uses)


def _change_log(connection: sqlite3.Connection, reservation_id: str, changes: Sequence[LogChange]) -> list[Outcome]:
    row = connection.execute(sql.READ_LOG, (reservation_id,)).fetchone()
    before = unpack_log(row[0]) if row else None
    after, outcomes = apply_all(before, changes)
    if after is None:
        connection.execute(sql.REMOVE_LOG, (reservation_id,))
    elif after != before:
        connection.execute(sql.WRITE_LOG, (reservation_id, pack_log(after)))
    return outcomes


def _totals(connection: sqlite3.Connection, query: str, parameters: dict[str, Any]) -> list[KeptTotal]:
    rows = connection.execute(query, parameters).fetchall()
    return [KeptTotal(org_id, model, n, size, Usage(*usage)) for org_id, model, n, size, *usage in rows]


def _parameters(selection: ResultSelection) -> dict[str, Any]:
    before = None if selection.before is None else to_micros(selection.before)
    return {"before": before, "model": selection.model, "org_id": selection.org_id}
