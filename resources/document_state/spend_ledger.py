"""The spend ledger: one record that all workers share, so that no two of them spend the same dollar.

What decides about the next reservation (the book, kind `spend`) is small and changed by compare-and-set. What is over
moves out: a finished day into a record of kind `spend_day`, idle jobs into records of kind `spend_job`. It is written
there first and removed from the book then, so dying between the two has it moved again, with the same content.
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from resources.document_state.spend_book import (
    ByModel,
    Ceilings,
    JobSpend,
    OpenReservation,
    Refusal,
    Reservation,
    SpendBook,
    SpendTotals,
)
from resources.records.backend import BackendUnavailableError, RecordBackend
from resources.records.decoding import decoded
from resources.records.record import Stamp, Write

KIND = "spend"
DAY_KIND = "spend_day"
JOB_KIND = "spend_job"
IDLE_JOBS_KEPT = 64
_KEY = "book"
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.25
_PATIENCE_SECONDS = 60.0

Change = Callable[[SpendBook], SpendBook]


class SpendReport(msgspec.Struct, frozen=True):
    """What was spent by day and by job, and what is reserved now. Jobs are those that spent something on the days."""

    days: dict[str, ByModel]
    jobs: dict[str, JobSpend]
    open: list[OpenReservation]


class SpendLedger:
    """The book and what has moved out of it, as records of a backend. Every method may be repeated after an error."""

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend

    async def reserve(self, wanted: Reservation, ceilings: Ceilings, now: datetime) -> Refusal | None:
        """Hold money back for a batch; a refusal if a ceiling would be exceeded, and then nothing is held.

        Raises:
            BackendUnavailableError: nothing is known. Reserving the same again does not hold it twice.
        """
        tries = _Tries(self._backend.uri)
        while True:
            book, stamp = await self._book_with(wanted.job_id)
            after = book.reserved(wanted, ceilings, day_of(now))
            if isinstance(after, Refusal):
                return after
            if after == book or await self._put(after, stamp):
                return None
            await tries.after_race()

    async def give_back(self, lost: Reservation, now: datetime) -> None:
        """Hold again what was held for calls that were begun: an older copy of the ledger does not know of it."""
        await self._change(lambda book: book.with_lost(lost, day_of(now)))

    async def settle(self, reservation_id: str, spent: ByModel) -> None:
        """Put what a batch cost in place of what was held back for it. One that is settled stays as it is."""
        await self._change(lambda book: book.settled(reservation_id, spent))
        await self._move_out()

    async def settle_in_full(self, reservation_id: str) -> None:
        """Settle a reservation of which nobody can say what was spent: all of it."""

        def change(book: SpendBook) -> SpendBook:
            found = book.open.get(reservation_id)
            if found is None:
                return book
            held = found.reservation
            spent = {held.model: SpendTotals(micro_usd=held.micro_usd, assumed_micro_usd=held.micro_usd)}
            return book.settled(reservation_id, spent)

        await self._change(change)
        await self._move_out()

    async def open_reservations(self) -> list[Reservation]:
        """What is held back now."""
        book, _ = await self._book()
        return [each.reservation for each in book.open.values()]

    async def left(self, job_id: str, ceilings: Ceilings, now: datetime) -> int | None:
        """How many millionths of a dollar a job may still reserve now; None: as many as it likes."""
        book, _ = await self._book_with(job_id)
        return book.left(job_id, ceilings, day_of(now))

    async def of_job(self, job_id: str) -> ByModel:
        """What a job has spent so far, by model. Costs the book, and a record if the job is over for long."""
        book, _ = await self._book_with(job_id)
        return book.jobs[job_id].models if job_id in book.jobs else {}

    async def report(self, since: str = "") -> SpendReport:
        """What was spent on the days from `since` on, as 2026-01-31."""
        # The book comes first: what it has no more has moved out by then, and what it has is the later version.
        book, _ = await self._book()
        days = dict(book.days)
        async for record in self._backend.list_records(DAY_KIND):
            if record.key not in days:
                days[record.key] = decoded(self._backend.uri, DAY_KIND, record, dict[str, SpendTotals])
        jobs = dict(book.jobs)
        labels = [day for day in await self._backend.count_labels(JOB_KIND) if day >= since]
        if labels:
            async for record in self._backend.list_records(JOB_KIND, labels=labels):
                if record.key not in jobs:
                    jobs[record.key] = decoded(self._backend.uri, JOB_KIND, record, JobSpend)
        return SpendReport(
            {day: days[day] for day in sorted(days) if day >= since},
            {job_id: job for job_id, job in sorted(jobs.items()) if job.last_day >= since},
            list(book.open.values()),
        )

    async def _move_out(self) -> None:
        """Move out what is over, if it is worth a write."""
        book, _ = await self._book()
        days, jobs = book.finished_days(), book.idle_jobs()
        if len(jobs) < IDLE_JOBS_KEPT:
            jobs = {}
        if not days and not jobs:
            return
        # A finished day changes no more, so whoever wrote it before wrote the same.
        writes = [Write(day, msgspec.json.encode(models), None) for day, models in days.items()]
        await self._backend.compare_and_set(DAY_KIND, writes)
        kept = await self._keep_jobs(jobs)
        await self._change(lambda book: book.without(days, kept))

    async def _keep_jobs(self, jobs: dict[str, JobSpend]) -> dict[str, JobSpend]:
        """Write down jobs unless a later version is there; those that are kept."""
        found = await self._backend.read_many(JOB_KIND, jobs)
        writes, kept = [], {}
        for job_id, job in jobs.items():
            record = found.get(job_id)
            if record and decoded(self._backend.uri, JOB_KIND, record, JobSpend).n_settled >= job.n_settled:
                kept[job_id] = job
            else:
                stamp = record.stamp if record else None
                writes.append(Write(job_id, msgspec.json.encode(job), stamp, label=job.last_day))
        results = await self._backend.compare_and_set(JOB_KIND, writes)
        return kept | {result.key: jobs[result.key] for result in results if result.written}

    async def _book(self) -> tuple[SpendBook, Stamp | None]:
        record = await self._backend.read(KIND, _KEY)
        if record is None:
            return SpendBook(), None
        return decoded(self._backend.uri, KIND, record, SpendBook), record.stamp

    async def _book_with(self, job_id: str) -> tuple[SpendBook, Stamp | None]:
        """The book, with a job in it that had moved out.

        The job is read after the book: if it moves out later, the book changes, and a write to the one read is refused.
        """
        book, stamp = await self._book()
        if job_id not in book.jobs:
            record = await self._backend.read(JOB_KIND, job_id)
            if record is not None:
                book = book.with_job(job_id, decoded(self._backend.uri, JOB_KIND, record, JobSpend))
        return book, stamp

    async def _change(self, change: Change) -> None:
        tries = _Tries(self._backend.uri)
        while True:
            book, stamp = await self._book()
            after = change(book)
            if after == book or await self._put(after, stamp):
                return
            await tries.after_race()

    async def _put(self, book: SpendBook, stamp: Stamp | None) -> bool:
        [result] = await self._backend.compare_and_set(KIND, [Write(_KEY, msgspec.json.encode(book), stamp)])
        return result.written


class _Tries:
    """Growing pauses of random length between attempts, so that rivals part. In each race somebody is first."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._until = time.monotonic() + _PATIENCE_SECONDS
        self._longest = _FIRST_PAUSE

    async def after_race(self) -> None:
        """Wait: somebody else was first.

        Raises:
            BackendUnavailableError: for too long.
        """
        if time.monotonic() > self._until:
            message = f"the spend ledger: others were first for {_PATIENCE_SECONDS:.0f} seconds. Try again later."
            raise BackendUnavailableError(self._uri, message)
        await asyncio.sleep(random.uniform(0, self._longest))  # noqa: S311 - no secret
        self._longest = min(_LONGEST_PAUSE, 2 * self._longest)


def day_of(now: datetime) -> str:
    """The day of a moment, in UTC."""
    return now.astimezone(UTC).date().isoformat()
