"""Paid results in an S3 bucket, for workers on many machines.

Below `<prefix>/paid/`:

    results/<first 2 digits of the key>/<key>    an answer, and which documents use it
    documents/<document id>.uses/<a hash>        keys of answers that a document uses, noted before they are kept
    logs/<reservation id>                        the calls of a reservation that is not settled

All are changed on the condition that they are as they were read. A document's keys are found by listing its own prefix,
so forgetting it costs what it used, not what there is.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

import msgspec

from resources.artifact_store.artifact import short_hash
from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results.call_log import Call, CallLog, pack_log, unpack_log
from resources.artifact_store.paid_results.group_commit import GroupCommit
from resources.artifact_store.paid_results.kept_answer import decoded, with_documents, with_result, without_document
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
    results_of,
    totals_of,
)
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.s3_objects import S3Objects
from resources.artifact_store.paid_results.usage import Usage
from resources.aws.location import AwsLocation
from resources.records.backend import BackendError
from resources.records.s3.bucket import Found
from resources.records.s3.threads import Threads

A = TypeVar("A")
T = TypeVar("T")

_RESULTS = "results/"
_LOGS = "logs/"


class S3Journal(PaidResultJournal):
    """Nothing is asked of the bucket before it is used."""

    def __init__(self, location: AwsLocation) -> None:
        self._objects = S3Objects(msgspec.structs.replace(location, prefix=f"{location.prefix}paid/"))
        self._threads = Threads()  # for single requests, which wait for nothing but their answer
        self._recorders = Threads()  # for those that wait for several of them
        self._group: GroupCommit[LogChange, CallLog | None] = GroupCommit(self._commit)
        self._seen_lock = threading.Lock()
        self._seen: dict[str, Found] = {}  # logs as they were last, which are mostly ours alone to change

    async def find(self, keys: Collection[str]) -> dict[str, PaidResult]:
        """See PaidResultJournal."""
        wanted = list(dict.fromkeys(keys))
        with self._errors():
            found = await self._each(self._read_result, wanted)
        return {key: kept[0] for key, kept in zip(wanted, found, strict=True) if kept is not None}

    async def adopt(self, document_id: str, keys: Collection[str]) -> None:
        """See PaidResultJournal."""
        with self._errors():
            await self._threads.run(self._note_use, document_id, keys)
            await self._each(lambda key: self._objects.change(_result(key), with_documents(key, [document_id])), keys)

    async def open_log(self, log: CallLog) -> None:
        """See PaidResultJournal."""
        await self._group.commit(opening(log))

    async def begin(self, reservation_id: str, calls: Sequence[Call]) -> None:
        """See PaidResultJournal."""
        await self._group.commit(beginning(reservation_id, calls))

    async def record(
        self, reservation_id: str, call: Call, answers: Sequence[Answer], usage: Usage, now: datetime
    ) -> dict[str, PaidResult]:
        """See PaidResultJournal. The answers come first: dying then leaves a call that is settled at its worst case."""
        results = results_of(call, reservation_id, answers, usage, now)
        # A thread goes on although its caller is cancelled: what was paid for is kept.
        recording = self._recorders.submit(self._record, results, answers, paying(reservation_id, call.call_id, usage))
        return await asyncio.shield(asyncio.wrap_future(recording))

    async def failed(self, reservation_id: str, call_id: str, billed: Usage) -> None:
        """See PaidResultJournal."""
        await self._group.commit(paying(reservation_id, call_id, billed))

    async def seal(self, reservation_id: str) -> CallLog | None:
        """See PaidResultJournal."""
        return await self._group.commit(sealing(reservation_id))

    async def close(self, reservation_id: str) -> None:
        """See PaidResultJournal."""
        await self._group.commit(closing(reservation_id))

    async def logs(self) -> list[CallLog]:
        """See PaidResultJournal."""
        with self._errors():
            names = await self._threads.run(self._objects.bucket.list, _LOGS)
            found = await self._each(self._objects.read, names)
        return [log for each in found if each is not None and (log := unpack_log(each.body)) is not None]

    async def forget(self, document_id: str) -> int:
        """See PaidResultJournal. What names the document goes last, so that whoever dies on the way can begin anew."""
        with self._errors():
            notes = list(await self._threads.run(self._objects.bucket.list, _uses(document_id)))
            found = await self._each(self._objects.read, notes)
            keys = {key for note in found if note is not None for key in _keys_in(note.body)}
            removed = await self._each(lambda key: self._release(key, document_id), keys)
            await self._each(self._objects.bucket.delete, notes)
        return sum(removed)

    async def totals(self, selection: ResultSelection) -> list[KeptTotal]:
        """See PaidResultJournal. Reads every answer that is kept."""
        return totals_of([kept for _, kept in await self._selected(selection)])

    async def prune(self, selection: ResultSelection) -> list[KeptTotal]:
        """See PaidResultJournal. Reads every answer that is kept."""
        unsettled = {log.reservation_id for log in await self.logs()}
        chosen = [each for each in await self._selected(selection) if each[1][0].reservation_id not in unsettled]
        with self._errors():
            await self._each(self._objects.bucket.delete, [name for name, _ in chosen])
        return totals_of([kept for _, kept in chosen])

    async def shut(self) -> None:
        """See PaidResultJournal."""
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._recorders.close()
        self._group.shut()
        self._threads.close()
        self._objects.bucket.close()

    async def _each(self, work: Callable[[A], T], items: Collection[A]) -> list[T]:
        """The result for each item, in order; the first failure, once nothing is under way any more."""
        done = await asyncio.gather(*(self._threads.run(work, item) for item in items), return_exceptions=True)
        results = []
        for result in done:
            if isinstance(result, BaseException):
                raise result
            results.append(result)
        return results

    async def _selected(self, selection: ResultSelection) -> list[tuple[str, tuple[PaidResult, int]]]:
        with self._errors():
            names = list(await self._threads.run(self._objects.bucket.list, _RESULTS))
            keys = [name.rpartition("/")[2] for name in names]
            found = await self._each(self._read_result, keys)
        return [
            (name, kept) for name, kept in zip(names, found, strict=True) if kept is not None and selection.has(kept[0])
        ]

    def _read_result(self, key: str) -> tuple[PaidResult, int] | None:
        """A result and the size of its object."""
        found = self._objects.read(_result(key))
        kept = decoded(key, found.body) if found else None
        return (kept.result, len(found.body)) if found and kept else None

    def _record(
        self, results: Sequence[PaidResult], answers: Sequence[Answer], payment: LogChange
    ) -> dict[str, PaidResult]:
        keys_of: dict[str, list[str]] = {}
        for answer in answers:
            for document_id in answer.document_ids:
                keys_of.setdefault(document_id, []).append(answer.key)
        with self._errors():
            _wait_for([self._threads.submit(self._note_use, *use) for use in keys_of.items()])
            kept = _wait_for(
                [
                    self._threads.submit(self._keep, result, answer.document_ids)
                    for result, answer in zip(results, answers, strict=True)
                ]
            )
        self._group.queue(payment).result()
        return {result.key: result for result in kept}

    def _keep(self, result: PaidResult, document_ids: Collection[str]) -> PaidResult:
        """Keep a result, and give the one that stands."""
        found = self._objects.change(_result(result.key), with_result(result, document_ids))
        kept = decoded(result.key, found.body) if found else None
        return kept.result if kept else result

    def _note_use(self, document_id: str, keys: Collection[str]) -> None:
        name = f"{_uses(document_id)}{short_hash(*sorted(keys))}"
        self._objects.change(name, lambda found: msgspec.json.encode(sorted(keys)) if found is None else None)

    def _release(self, key: str, document_id: str) -> bool:
        """Take a document off an answer; an answer of no document goes, and then it is true."""
        found = self._objects.change(_result(key), without_document(key, document_id))
        kept = decoded(key, found.body) if found else None
        is_removed = found is not None and (kept is None or not kept.document_ids)
        if is_removed:
            self._objects.bucket.delete(_result(key))
        return is_removed

    def _commit(self, changes: Sequence[LogChange]) -> list[Outcome]:
        """The changes of each log in one PUT, those of several logs at once."""
        places: dict[str, list[int]] = {}
        for place, change in enumerate(changes):
            places.setdefault(change.reservation_id, []).append(place)
        under_way = [
            (its, self._threads.submit(self._change_log, reservation_id, [changes[place] for place in its]))
            for reservation_id, its in places.items()
        ]
        outcomes: list[Outcome] = [None] * len(changes)
        for its, future in under_way:
            for place, outcome in zip(its, future.result(), strict=True):
                outcomes[place] = outcome
        return outcomes

    def _change_log(self, reservation_id: str, changes: Sequence[LogChange]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        after: CallLog | None = None

        def transform(body: bytes | None) -> bytes | None:
            nonlocal after
            before = unpack_log(body) if body is not None else None
            after, outcomes[:] = apply_all(before, changes)
            return None if after is None or after == before else pack_log(after)

        name = _LOGS + quote(reservation_id, safe="")
        try:
            with self._errors():
                found = self._objects.change(name, transform, self._seen_as(reservation_id))
                if after is None and found is not None:
                    self._objects.bucket.delete(name)
        except ArtifactStoreError as error:
            self._remember(reservation_id, None)
            return [error] * len(changes)
        self._remember(reservation_id, found if after is not None else None)
        return outcomes

    def _seen_as(self, reservation_id: str) -> Found | None:
        with self._seen_lock:
            return self._seen.get(reservation_id)

    def _remember(self, reservation_id: str, found: Found | None) -> None:
        with self._seen_lock:
            if found is None:
                self._seen.pop(reservation_id, None)
            else:
                self._seen[reservation_id] = found

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BackendError as error:
            raise ArtifactStoreError(f"Paid results {error.uri}: {error.message}") from error


def _wait_for(futures: Sequence[Future[T]]) -> list[T]:
    """The results, in order; the first failure, once all have ended."""
    wait(futures)
    return [future.result() for future in futures]


def _result(key: str) -> str:
    return f"{_RESULTS}{quote(key[:2], safe='')}/{quote(key, safe='')}"


def _uses(document_id: str) -> str:
    # The suffix keeps a name of dots from being a step up in the eyes of a server that stores files.
    return f"documents/{quote(document_id, safe='')}.uses/"


def _keys_in(note: bytes) -> list[str]:
    try:
        return msgspec.json.decode(note, type=list[str])
    except msgspec.MsgspecError:
        return []
