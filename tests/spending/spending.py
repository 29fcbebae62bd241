"""Reservations and what was spent, for the tests of the ledger."""

from datetime import UTC, datetime

from resources.document_state.patience import Patience
from resources.document_state.spend_book import Reservation, SpendTotals

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = "2026-01-31"


async def _never() -> None:
    raise AssertionError("Nobody waits.")


NO_PATIENCE = Patience(0, _never, 1, lambda: None)


def reservation(
    reservation_id: str, micro_usd: int, *, job_id: str = "j", worker_id: str = "w", model: str = "m"
) -> Reservation:
    """Money for a batch."""
    return Reservation(reservation_id, job_id, worker_id, model, micro_usd)


def spent(micro_usd: int, model: str = "m") -> dict[str, SpendTotals]:
    """One call's cost."""
    return {model: SpendTotals(1, 10, 5, micro_usd)}
