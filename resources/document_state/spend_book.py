"""The book of the spend ledger: what is reserved, and what was spent by day and job. Pure; the ledger keeps it.

A reservation counts for the day it was made on, whenever it is settled, so that each day's reserved and settled money
never exceeds what was allowed on it. Money is whole millionths of a US dollar.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

ByModel = Mapping[str, "SpendTotals"]

_GIVEN_BACK_KEPT = 256


class Ceilings(msgspec.Struct, frozen=True):
    """The most that may be spent, in millionths of a dollar; None: no limit."""

    per_job_micro_usd: int | None = None
    per_day_micro_usd: int | None = None


class SpendTotals(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was spent.

    Attributes:
        calls: calls to a model.
        input_tokens: of the calls whose answer is known, as are the output tokens.
        output_tokens: see there.
        micro_usd: what was spent, calls whose bill is unknown at their worst case.
        assumed_micro_usd: how much of it is of calls whose bill is unknown.
        estimated_micro_usd: what had been reserved for it.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0
    assumed_micro_usd: int = 0
    estimated_micro_usd: int = 0

    def plus(self, other: "SpendTotals") -> "SpendTotals":
        """The sum."""
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return SpendTotals(*(a + b for a, b in zip(mine, others, strict=True)))


class Reservation(msgspec.Struct, frozen=True):
    """Money held back for one batch.

    Attributes:
        reservation_id: unique for ever.
        job_id: the ingest job it is for.
        worker_id: whose death settles it.
        model: who is to be paid, so that the estimate can be compared.
        micro_usd: the worst case.
    """

    reservation_id: str
    job_id: str
    worker_id: str
    model: str
    micro_usd: int


class JobSpend(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job has spent. `n_settled` grows with every settlement: of two versions the larger is the later."""

    last_day: str
    n_settled: int = 0
    models: ByModel = {}


class OpenReservation(msgspec.Struct, frozen=True):
    """A reservation that is not settled, and the day it counts for."""

    reservation: Reservation
    day: str


class Refusal(msgspec.Struct, frozen=True):
    """Why nothing was reserved. Money in millionths of a dollar; `ceiling` is the setting's name.

    `waited_seconds`: for how long in vain others were waited for, who had reserved what would have been enough.
    """

    ceiling: str
    estimate_micro_usd: int
    ceiling_micro_usd: int
    spent_micro_usd: int
    reserved_micro_usd: int
    waited_seconds: float = 0.0

    @property
    def is_final(self) -> bool:
        """Whether what is spent leaves too little, so that waiting for those who have reserved the rest is no use."""
        return self.spent_micro_usd + self.estimate_micro_usd > self.ceiling_micro_usd

    @property
    def left_micro_usd(self) -> int:
        """What may be reserved at most now."""
        return max(0, self.ceiling_micro_usd - self.spent_micro_usd - self.reserved_micro_usd)

    @property
    def standing(self) -> str:
        """How much was asked for and how much there is."""
        return (
            f"The batch may cost {in_dollars(self.estimate_micro_usd)}, and of {self.ceiling} = "
            f"{in_dollars(self.ceiling_micro_usd)} is left {in_dollars(self.left_micro_usd)}: "
            f"{in_dollars(self.spent_micro_usd)} is spent, and {in_dollars(self.reserved_micro_usd)} is reserved by "
            "batches under way."
        )

    @property
    def message(self) -> str:
        """What happened and what to do."""
        waited = (
            f" They were waited for {self.waited_seconds:.0f} s (spend.wait_seconds)." if self.waited_seconds else ""
        )
        return f"{self.standing}{waited} Nothing of it was extracted. Raise the ceiling in ingest.toml, or wait."


class _Limit(NamedTuple):
    """A ceiling and how much of it is taken."""

    name: str
    ceiling: int
    spent: int
    held: int

    @property
    def left(self) -> int:
        """What may be reserved at most now."""
        return max(0, self.ceiling - self.spent - self.held)


class SpendBook(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that the decision about the next reservation needs, in one record.

    Attributes:
        day: the latest day any writer has seen, as 2026-01-31. It never goes back: a clock that is behind cannot open
            a day again.
        open: reservations by id.
        days: what was settled, by day and model; days that nothing more can be added to move out.
        jobs: what was settled by job; idle ones move out.
        given_back: the latest reservations that this book had lost and was given back, so that none is twice.
    """

    day: str = ""
    open: Mapping[str, OpenReservation] = {}
    days: Mapping[str, ByModel] = {}
    jobs: Mapping[str, JobSpend] = {}
    given_back: tuple[str, ...] = ()

    def reserved(self, wanted: Reservation, ceilings: Ceilings, day: str) -> "SpendBook | Refusal":
        """With a reservation, or why not. Reserving again what is reserved changes nothing.

        Args:
            wanted: the reservation; what its job has spent is in `jobs`, if it is to count.
            ceilings: what must not be exceeded.
            day: today, as the caller's clock has it.
        """
        if wanted.reservation_id in self.open:
            return self
        today = max(self.day, day)
        refusals = [
            Refusal(limit.name, wanted.micro_usd, limit.ceiling, limit.spent, limit.held)
            for limit in self._limits(wanted.job_id, ceilings, today)
            if limit.left < wanted.micro_usd
        ]
        if refusals:
            return next((refusal for refusal in refusals if refusal.is_final), refusals[0])
        return self._with_open(wanted, today)

    def with_lost(self, lost: Reservation, day: str) -> "SpendBook":
        """With a reservation that this book has lost, whatever the ceilings say: calls of it may have been billed."""
        if lost.reservation_id in self.open or lost.reservation_id in self.given_back:
            return self
        given_back = (*self.given_back, lost.reservation_id)[-_GIVEN_BACK_KEPT:]
        return msgspec.structs.replace(self._with_open(lost, max(self.day, day)), given_back=given_back)

    def left(self, job_id: str, ceilings: Ceilings, day: str) -> int | None:
        """What a job may still reserve; None: no ceiling holds it."""
        limits = self._limits(job_id, ceilings, max(self.day, day))
        return min((limit.left for limit in limits), default=None)

    def settled(self, reservation_id: str, spent: ByModel) -> "SpendBook":
        """With what a reservation cost; settling again changes nothing."""
        found = self.open.get(reservation_id)
        if found is None:
            return self
        rest = {key: each for key, each in self.open.items() if key != reservation_id}
        if not spent:
            return msgspec.structs.replace(self, open=rest)
        held, day = found.reservation, found.day
        added = added_up(spent, {held.model: SpendTotals(estimated_micro_usd=held.micro_usd)})
        job = self.jobs.get(held.job_id) or JobSpend(day)
        after = JobSpend(max(job.last_day, day), job.n_settled + 1, added_up(job.models, added))
        return msgspec.structs.replace(
            self,
            open=rest,
            days={**self.days, day: added_up(self.days.get(day, {}), added)},
            jobs={**self.jobs, held.job_id: after},
        )

    def with_job(self, job_id: str, job: JobSpend) -> "SpendBook":
        """With a job that had moved out."""
        return msgspec.structs.replace(self, jobs={**self.jobs, job_id: job})

    def finished_days(self) -> dict[str, ByModel]:
        """Days to which nothing can be added any more: over, and without an open reservation."""
        owed = {each.day for each in self.open.values()}
        return {day: models for day, models in self.days.items() if day < self.day and day not in owed}

    def idle_jobs(self) -> dict[str, JobSpend]:
        """Jobs that have nothing reserved."""
        busy = {each.reservation.job_id for each in self.open.values()}
        return {job_id: job for job_id, job in self.jobs.items() if job_id not in busy}

    def without(self, days: Collection[str], jobs: Mapping[str, JobSpend]) -> "SpendBook":
        """Without what was moved out, as far as it is still what was moved."""
        finished, idle = self.finished_days(), self.idle_jobs()
        return msgspec.structs.replace(
            self,
            days={day: models for day, models in self.days.items() if day not in days or day not in finished},
            jobs={
                job_id: job
                for job_id, job in self.jobs.items()
                if job_id not in idle or job_id not in jobs or jobs[job_id].n_settled != job.n_settled
            },
        )

    def _with_open(self, reservation: Reservation, day: str) -> "SpendBook":
        added = {reservation.reservation_id: OpenReservation(reservation, day)}
        return msgspec.structs.replace(self, day=day, open={**self.open, **added})

    def _limits(self, job_id: str, ceilings: Ceilings, today: str) -> list["_Limit"]:
        job = self.jobs.get(job_id)
        limits = []
        if (ceiling := ceilings.per_job_micro_usd) is not None:
            spent = spent_in(job.models) if job else 0
            limits.append(_Limit("spend.per_job_usd", ceiling, spent, self._held_by_job(job_id)))
        if (ceiling := ceilings.per_day_micro_usd) is not None:
            spent = spent_in(self.days.get(today, {}))
            limits.append(_Limit("spend.per_day_usd", ceiling, spent, self._held_on(today)))
        return limits

    def _held_by_job(self, job_id: str) -> int:
        held = (each.reservation for each in self.open.values())
        return sum(reservation.micro_usd for reservation in held if reservation.job_id == job_id)

    def _held_on(self, day: str) -> int:
        return sum(each.reservation.micro_usd for each in self.open.values() if each.day == day)


def added_up(one: ByModel, other: ByModel) -> dict[str, SpendTotals]:
    """Totals by model, added up."""
    total = dict(one)
    for model, totals in other.items():
        total[model] = total.get(model, SpendTotals()).plus(totals)
    return total


def spent_in(models: ByModel) -> int:
    """What was spent on all models."""
    return sum(totals.micro_usd for totals in models.values())


def in_dollars(micro_usd: int) -> str:
    """Millionths of a dollar as people read them; never rounded to nothing."""
    dollars, rest = divmod(micro_usd, 1_000_000)
    return f"${dollars:,}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"
