"""Changes of a reservation's log, as functions: a journal applies those that wait together, in one conditional write.

Each may be applied again to a log it is already in, so a writer whose reply was lost just tries again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results.call_log import Call, CallLog, ReservationClosedError
from resources.artifact_store.paid_results.usage import Usage

Outcome = CallLog | None | Exception


class LogChange(NamedTuple):
    """What is to become of a reservation's log; None: it is not there."""

    reservation_id: str
    apply: Callable[[CallLog | None], CallLog | None]


def opening(log: CallLog) -> LogChange:
    """The log is there."""
    return LogChange(log.reservation_id, lambda found: found or log)


def beginning(reservation_id: str, calls: Sequence[Call]) -> LogChange:
    """Calls are about to be sent. Without a log nothing may be: it was sealed and removed."""

    def apply(found: CallLog | None) -> CallLog:
        if found is None:
            raise ReservationClosedError(reservation_id)
        return found.begun(calls)

    return LogChange(reservation_id, apply)


def paying(reservation_id: str, call_id: str, usage: Usage) -> LogChange:
    """It is known what a call cost. Without a log it was settled at its worst case."""
    return LogChange(reservation_id, lambda found: found and found.paid(call_id, usage))


def sealing(reservation_id: str) -> LogChange:
    """Nothing begins any more."""
    return LogChange(reservation_id, lambda found: found and found.to_seal())


def closing(reservation_id: str) -> LogChange:
    """The log is gone; only a sealed one may be."""

    def apply(found: CallLog | None) -> None:
        if found is not None and not found.sealed:
            raise ArtifactStoreError(f"Reservation {reservation_id}: its log is not sealed. Settle it first.")

    return LogChange(reservation_id, apply)


def apply_all(log: CallLog | None, changes: Iterable[LogChange]) -> tuple[CallLog | None, list[Outcome]]:
    """The log after the changes, and for each the log after it, or why it was refused."""
    outcomes: list[Outcome] = []
    for change in changes:
        try:
            log = change.apply(log)
            outcomes.append(log)
        except ArtifactStoreError as error:
            outcomes.append(error)
    return log, outcomes
