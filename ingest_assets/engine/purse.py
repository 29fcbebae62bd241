"""What one batch may spend: its reservation, and one more for each attempt that does not fit into it any more.

A reservation covers each call once. A reply that was lost, or an answer nobody could read, has a call made again; what
the others did not use usually pays for that. Where it does not, the attempt is reserved for by itself.
"""

import uuid

from resources.artifact_store.paid_results.call_log import Call, ReservationExceededError
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.clock import utc_now
from resources.document_state.patience import Patience
from resources.document_state.reasons import Reason
from resources.document_state.spend_book import Ceilings, Refusal, Reservation
from resources.document_state.spend_gate import SpendGate
from resources.extractor.extractor import ExtractionError


class Purse:
    """Reservations of one batch, on behalf of one job and one worker."""

    def __init__(
        self,
        gate: SpendGate,
        journal: PaidResultJournal,
        ceilings: Ceilings,
        patience: Patience,
        job_id: str,
        worker_id: str,
        model: str,
    ) -> None:
        self._gate = gate
        self._journal = journal
        self._ceilings = ceilings
        self._patience = patience
        self._job_id = job_id
        self._worker_id = worker_id
        self._model = model
        self._reservations: list[str] = []

    async def fill(self, micro_usd: int) -> Refusal | None:
        """Reserve what the batch costs at most; a refusal if a ceiling would be exceeded.

        Waits for money that others have reserved, so nothing may be in it yet: they may be waiting for that.
        """
        assert not self._reservations
        wanted = self._wanted(micro_usd)
        return self._noted(wanted, await self._gate.admit_in_time(wanted, self._ceilings, utc_now, self._patience))

    async def begin(self, call: Call) -> str:
        """Note durably that a call is about to be sent; gives the reservation that pays for it.

        Raises:
            ExtractionError: it does not fit into what is left, and a ceiling forbids more (`spend_ceiling`).
        """
        try:
            await self._journal.begin(self._reservations[0], [call])
        except ReservationExceededError:
            wanted = self._wanted(call.worst_micro_usd)
            if refusal := self._noted(wanted, await self._gate.admit(wanted, self._ceilings, utc_now())):
                raise ExtractionError(Reason.SPEND_CEILING, refusal.message) from None
            await self._journal.begin(self._reservations[-1], [call])
            return self._reservations[-1]
        return self._reservations[0]

    async def empty(self) -> None:
        """Settle everything with what the calls cost. Safe to repeat."""
        for reservation_id in self._reservations:
            await self._gate.settle(reservation_id)

    def _wanted(self, micro_usd: int) -> Reservation:
        return Reservation(str(uuid.uuid4()), self._job_id, self._worker_id, self._model, micro_usd)

    def _noted(self, wanted: Reservation, refusal: Refusal | None) -> Refusal | None:
        if refusal is None:
            self._reservations.append(wanted.reservation_id)
        return refusal
