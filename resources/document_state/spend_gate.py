"""The gate before paid calls: journal and ledger in the one order in which no death spends money unseen.

    journal: log opened → ledger: reserved → journal: calls begun, answered → journal: log sealed → ledger: settled
    → journal: log removed

A call can only begin in a log that is there and not sealed, and a reservation is only settled when its log is sealed:
what the ledger says of it is final, and a worker that was taken for dead cannot spend what was settled.
"""

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime

from resources.artifact_store.paid_results.call_log import CallLog
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.usage import Usage
from resources.document_state.patience import Patience
from resources.document_state.spend_book import Ceilings, Refusal, Reservation, SpendTotals, added_up
from resources.document_state.spend_ledger import SpendLedger


class SpendGate:
    """Admits batches, and settles them: by their workers, or by a sweep for those that died."""

    def __init__(self, ledger: SpendLedger, journal: PaidResultJournal) -> None:
        self._ledger = ledger
        self._journal = journal

    async def admit(self, wanted: Reservation, ceilings: Ceilings, now: datetime) -> Refusal | None:
        """Reserve a batch's worst case; None: its calls may begin. A refused batch leaves nothing behind."""
        return await self._admit(wanted, lambda: self._ledger.reserve(wanted, ceilings, now))

    async def admit_in_time(
        self, wanted: Reservation, ceilings: Ceilings, clock: Callable[[], datetime], patience: Patience
    ) -> Refusal | None:
        """The same, but where only what others have reserved stands in the way, wait for them to be settled.

        Whoever calls this must hold no reservation: another one may be waiting for it.
        """

        async def attempt() -> Refusal | None:
            return await self._ledger.reserve(wanted, ceilings, clock())

        return await self._admit(wanted, lambda: patience.outlast(attempt))

    async def _admit(self, wanted: Reservation, reserve: Callable[[], Awaitable[Refusal | None]]) -> Refusal | None:
        log = CallLog(wanted.reservation_id, wanted.worker_id, wanted.micro_usd, job_id=wanted.job_id)
        await self._journal.open_log(log)
        refusal = await reserve()
        if refusal is not None:
            await self._discard(wanted.reservation_id)
        return refusal

    async def settle(self, reservation_id: str) -> None:
        """Put what a batch's calls cost in place of its reservation; nothing if none was begun. Safe to repeat."""
        log = await self._journal.seal(reservation_id)
        if log is None:
            # It is settled already, and then this changes nothing; or the journal has lost what was spent.
            await self._ledger.settle_in_full(reservation_id)
            return
        await self._ledger.settle(reservation_id, spent_of(log))
        await self._journal.close(reservation_id)

    async def sweep(self, living: Callable[[], Awaitable[Collection[str]]], now: datetime) -> list[str]:
        """Settle what the dead had reserved; the reservations that were.

        Args:
            living: the ids of all workers that are not declared dead. Asked after logs and ledger were read: whoever
                holds one of these had registered before, so if it is not among the living, it is dead or has ended.
            now: the day for which calls count whose reservation the ledger has lost.
        """
        logs = await self._journal.logs()
        held = await self._ledger.open_reservations()
        alive = set(await living())
        dead = [each.reservation_id for each in held if each.worker_id not in alive]
        for reservation_id in dead:
            await self.settle(reservation_id)
        known = {each.reservation_id for each in held}
        unknown = {log.reservation_id for log in logs if log.reservation_id not in known and log.worker_id not in alive}
        return dead + await self._sweep_unknown(unknown, now)

    async def _sweep_unknown(self, reservation_ids: Collection[str], now: datetime) -> list[str]:
        """End the logs of the dead that have no reservation; those whose calls nobody had settled.

        One without a call is of a batch that was refused, or died before it reserved; a sealed one is settled. One
        that is open *now*, after the ledger was read, never was: no reservation goes before its log is sealed. So the
        ledger has lost it, in a power cut or by an older copy that was put in its place.
        """
        if not reservation_ids:
            return []
        lost = []
        for log in await self._journal.logs():
            if log.reservation_id not in reservation_ids:
                continue
            if log.sealed or not log.calls:
                await self._discard(log.reservation_id)
            else:
                await self._ledger.give_back(_reservation_of(log), now)
                await self.settle(log.reservation_id)
                lost.append(log.reservation_id)
        return lost

    async def _discard(self, reservation_id: str) -> None:
        """Remove a log that has no reservation."""
        await self._journal.seal(reservation_id)
        await self._journal.close(reservation_id)


def _reservation_of(log: CallLog) -> Reservation:
    """What had been reserved for the calls of a log."""
    model = next(iter(log.calls.values())).model
    return Reservation(log.reservation_id, log.job_id, log.worker_id, model, log.limit_micro_usd)


def spent_of(log: CallLog) -> dict[str, SpendTotals]:
    """What a log says was spent, by model; calls whose bill is unknown at their worst case."""
    spent: dict[str, SpendTotals] = {}
    for call in log.calls.values():
        usage = call.usage
        if usage is None:
            totals = SpendTotals(1, micro_usd=call.worst_micro_usd, assumed_micro_usd=call.worst_micro_usd)
        else:
            # One that was refused for certain was never made.
            totals = SpendTotals(int(usage != Usage()), usage.input_tokens, usage.output_tokens, usage.micro_usd)
        spent = added_up(spent, {call.model: totals})
    return spent
