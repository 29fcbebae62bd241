"""The book is pure: whatever happens in whatever order, no ceiling is exceeded and no money is lost or doubled."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from resources.document_state.spend_book import (
    Ceilings,
    Refusal,
    Reservation,
    SpendBook,
    added_up,
    in_dollars,
    spent_in,
)
from tests.spending.spending import spent

PER_JOB, PER_DAY = 60, 100
CEILINGS = Ceilings(PER_JOB, PER_DAY)
JOBS = ("one", "two", "three")


class Schedules(RuleBasedStateMachine):
    """Reservations, settlements and moves in any order, with clocks that jump, beside what is true."""

    def __init__(self):
        super().__init__()
        self.book = SpendBook()
        self.moved_days, self.moved_jobs = {}, {}
        self.paid = 0
        self.number = 0
        self.settled = []

    @rule(job=st.sampled_from(JOBS), money=st.integers(0, 70), day=st.integers(1, 4))
    def reserve(self, job, money, day):
        """Reserve as the ledger does: with what the job spent before, if it had moved out."""
        if job not in self.book.jobs and job in self.moved_jobs:
            book = self.book.with_job(job, self.moved_jobs[job])
        else:
            book = self.book
        self.number += 1
        wanted = Reservation(f"r{self.number}", job, "w", "m", money)
        after = book.reserved(wanted, CEILINGS, f"2026-01-0{day}")
        if isinstance(after, Refusal):
            assert after.left_micro_usd < money
            assert after.is_final == isinstance(released(book).reserved(wanted, CEILINGS, f"2026-01-0{day}"), Refusal)
        else:
            assert after.left(job, CEILINGS, after.day) is not None
            self.book = after

    @rule(share=st.floats(0, 1), data=st.data())
    def settle(self, share, data):
        """Settle any open reservation with up to what it held, or with nothing, as a batch that made no call."""
        if self.book.open:
            chosen = data.draw(st.sampled_from(sorted(self.book.open)))
            money = int(self.book.open[chosen].reservation.micro_usd * share)
            self.book = self.book.settled(chosen, spent(money) if money else {})
            self.paid += money
            self.settled.append(chosen)

    @rule(data=st.data())
    def settle_again(self, data):
        """A settlement that is repeated, as after a lost reply or by a second sweep, changes nothing."""
        if self.settled:
            chosen = data.draw(st.sampled_from(self.settled))
            assert self.book.settled(chosen, spent(50)) == self.book

    @rule(dies=st.booleans())
    def move_out(self, dies):
        """Move out what is over; dying between the two writes leaves it in both places."""
        days, jobs = self.book.finished_days(), self.book.idle_jobs()
        for day, models in days.items():
            assert self.moved_days.setdefault(day, models) == models
        for job_id, job in jobs.items():
            if job_id not in self.moved_jobs or self.moved_jobs[job_id].n_settled < job.n_settled:
                self.moved_jobs[job_id] = job
        if not dies:
            self.book = self.book.without(days, jobs)

    @invariant()
    def no_ceiling_is_exceeded(self):
        """Settled and reserved stay within the ceiling, for each day and each job, at every moment."""
        for day in {*self.book.days, *(each.day for each in self.book.open.values())}:
            held = sum(each.reservation.micro_usd for each in self.book.open.values() if each.day == day)
            assert spent_in(self.book.days.get(day, {})) + held <= PER_DAY
        for models in self.moved_days.values():
            assert spent_in(models) <= PER_DAY
        for job in JOBS:
            held = sum(e.reservation.micro_usd for e in self.book.open.values() if e.reservation.job_id == job)
            assert spent_in(self.job_totals(job)) + held <= PER_JOB

    @invariant()
    def every_payment_is_in_exactly_one_place(self):
        """By days and by jobs, the book and what moved out of it add up to what was paid."""
        days = {**self.moved_days, **self.book.days}
        assert sum(spent_in(models) for models in days.values()) == self.paid
        assert sum(spent_in(self.job_totals(job)) for job in JOBS) == self.paid

    def job_totals(self, job):
        """What a job spent, as the report says."""
        found = self.book.jobs.get(job) or self.moved_jobs.get(job)
        return found.models if found else {}


def released(book):
    """A book of which everything that was reserved has been settled, and had cost nothing."""
    for reservation_id in book.open:
        book = book.settled(reservation_id, {})
    return book


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_money_is_shown_whole():
    """Money is never rounded to nothing, and cents look like cents."""
    shown = [in_dollars(micro_usd) for micro_usd in (0, 1, 10_000, 1_500_000, 1_234_567_890_123)]
    assert shown == ["$0.00", "$0.000001", "$0.01", "$1.50", "$1,234,567.890123"]


def test_refusal_says_what_to_do():
    """A refusal names estimate, ceiling, what is spent, reserved and left, and the setting to raise."""
    said = Refusal("spend.per_day_usd", 6_000_000, 10_000_000, 1_000_000, 4_500_000).message
    for part in ("$6.00", "spend.per_day_usd", "$10.00", "$1.00", "$4.50", "ingest.toml"):
        assert part in said


def test_totals_by_model_add_up():
    """Models are apart."""
    both = added_up(added_up({}, spent(3, "a")), added_up(spent(4, "a"), spent(5, "b")))
    assert {model: totals.micro_usd for model, totals in both.items()} == {"a": 7, "b": 5}
