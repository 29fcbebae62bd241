"""The calls of one reservation: what was begun, what was paid. Pure; a journal keeps it, each change conditional.

A log is made before its reservation, and ends in two steps: **sealed**, after which nothing may begin, and gone. So
whoever settles a reservation seals its log first and knows then, for good, all that was or may yet be spent from it: a
worker that was taken for dead and wakes is refused its next call.
"""

from collections.abc import Mapping, Sequence

import msgspec

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results.frame import framed, unframed
from resources.artifact_store.paid_results.usage import Usage


class ReservationClosedError(ArtifactStoreError):
    """The reservation was settled, by the sweep or for good; nothing may be spent from it any more."""

    def __init__(self, reservation_id: str) -> None:
        super().__init__(f"Reservation {reservation_id} is settled: its worker was declared dead, or has ended.")
        self.reservation_id = reservation_id


class ReservationExceededError(ArtifactStoreError):
    """The calls would cost more in the worst case than what was reserved for them."""

    def __init__(self, reservation_id: str, limit: int, wanted: int) -> None:
        super().__init__(
            f"Reservation {reservation_id}: the calls may cost {wanted} millionths of a dollar in all, "
            f"and {limit} are reserved. Reserve more, or make fewer calls."
        )
        self.reservation_id = reservation_id


class Call(msgspec.Struct, frozen=True):
    """A call that is about to be sent: one attempt, which may be billed.

    Attributes:
        call_id: unique in its reservation.
        org_id: for whom.
        model: who is asked.
        worst_micro_usd: what it costs at most.
    """

    call_id: str
    org_id: str
    model: str
    worst_micro_usd: int


class LoggedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that was begun. `usage` is None until it is known what it cost."""

    model: str
    worst_micro_usd: int
    usage: Usage | None = None


class CallLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """All calls of a reservation.

    Attributes:
        reservation_id: whose calls.
        worker_id: who makes them.
        limit_micro_usd: what was reserved for them.
        sealed: nothing may begin any more.
        micro_usd: what was spent, calls whose bill is unknown at their worst; kept, since adding up anew for each of a
            thousand calls would be a million additions.
        calls: each call by its id.
        job_id: the ingest job they are for.
    """

    reservation_id: str
    worker_id: str
    limit_micro_usd: int
    sealed: bool = False
    micro_usd: int = 0
    calls: Mapping[str, LoggedCall] = {}
    job_id: str = ""

    def begun(self, calls: Sequence[Call]) -> "CallLog":
        """With calls that are about to be sent. Beginning one again changes nothing.

        Raises:
            ReservationClosedError: it is sealed.
            ReservationExceededError: they may cost more than is left.
        """
        if self.sealed:
            raise ReservationClosedError(self.reservation_id)
        new = {
            call.call_id: LoggedCall(call.model, call.worst_micro_usd)
            for call in calls
            if call.call_id not in self.calls
        }
        micro_usd = self.micro_usd + sum(call.worst_micro_usd for call in new.values())
        if new and micro_usd > self.limit_micro_usd:
            raise ReservationExceededError(self.reservation_id, self.limit_micro_usd, micro_usd)
        return msgspec.structs.replace(self, micro_usd=micro_usd, calls={**self.calls, **new})

    def paid(self, call_id: str, usage: Usage) -> "CallLog":
        """With what a call cost. The first word on a call stands; once sealed, the log says what was settled."""
        call = self.calls.get(call_id)
        if self.sealed or call is None or call.usage is not None:
            return self
        return msgspec.structs.replace(
            self,
            micro_usd=self.micro_usd - call.worst_micro_usd + usage.micro_usd,
            calls={**self.calls, call_id: msgspec.structs.replace(call, usage=usage)},
        )

    def to_seal(self) -> "CallLog":
        """The same, for ever."""
        return msgspec.structs.replace(self, sealed=True)


def pack_log(log: CallLog) -> bytes:
    """A log as bytes."""
    return framed(msgspec.msgpack.encode(log))


def unpack_log(kept: bytes) -> CallLog | None:
    """A log as it was kept; None if it is damaged: whoever settles assumes that all was spent."""
    raw = unframed(kept)
    try:
        return None if raw is None else msgspec.msgpack.decode(raw, type=CallLog)
    except msgspec.MsgspecError:
        return None
