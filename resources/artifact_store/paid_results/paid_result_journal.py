"""The port of the journal of paid results.

A call to a model goes in this order, so that no death costs a second one:

1. `open_log`, then the reservation in the spend ledger;
2. `begin`: durable before the call is sent;
3. `record`: the answers and what they cost, durable before anything else is done with them; or `failed`;
4. `seal`, the settlement in the ledger, `close`.

`resources.document_state.spend_gate` keeps the order of 1 and 4.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime

from resources.artifact_store.paid_results.call_log import Call, CallLog
from resources.artifact_store.paid_results.paid_result import Answer, KeptTotal, PaidResult, ResultSelection
from resources.artifact_store.paid_results.usage import Usage


class PaidResultJournal(ABC):
    """Keeps answers by key, and for each reservation the log of its calls.

    May be used by many threads, event loops and processes at once; every method may be repeated after an error. All
    raise ArtifactStoreError where the place they are kept in does not answer.
    """

    @abstractmethod
    async def find(self, keys: Collection[str]) -> dict[str, PaidResult]:
        """The results that are there among `keys`, and whole: a damaged one counts as absent."""

    @abstractmethod
    async def adopt(self, document_id: str, keys: Collection[str]) -> None:
        """Note that a document uses results that were found, so that they stay when another document is forgotten."""

    @abstractmethod
    async def open_log(self, log: CallLog) -> None:
        """Make a reservation's log, before the reservation itself."""

    @abstractmethod
    async def begin(self, reservation_id: str, calls: Sequence[Call]) -> None:
        """Note calls before they are sent. What waits at the same time is synced together.

        Raises:
            ReservationClosedError: the reservation is settled; send nothing.
            ReservationExceededError: they may cost more than what is left of it; send nothing.
        """

    @abstractmethod
    async def record(
        self, reservation_id: str, call: Call, answers: Sequence[Answer], usage: Usage, now: datetime
    ) -> dict[str, PaidResult]:
        """Keep what a call answered and what it cost. One call may answer several keys.

        Returns:
            What stands under each key: where somebody else was first, that answer, so that all go on with the same.
        """

    @abstractmethod
    async def failed(self, reservation_id: str, call_id: str, billed: Usage) -> None:
        """Note what a call without an answer cost; `Usage()`: for certain nothing.

        A call whose bill is unknown (its reply was lost) is not noted: its worst case stands.
        """

    @abstractmethod
    async def seal(self, reservation_id: str) -> CallLog | None:
        """End a reservation's log, and give it; nothing may begin from then on.

        None: there is none, or it is damaged. Then nobody can say what was spent.
        """

    @abstractmethod
    async def close(self, reservation_id: str) -> None:
        """Remove a sealed log, once its reservation is settled."""

    @abstractmethod
    async def logs(self) -> list[CallLog]:
        """Every log there is, damaged ones left out."""

    @abstractmethod
    async def forget(self, document_id: str) -> int:
        """Remove the results that no other document uses, and all that names the document; how many results went.

        A document that adopts one of them in the same moment may lose it, which costs one call.
        """

    @abstractmethod
    async def totals(self, selection: ResultSelection) -> list[KeptTotal]:
        """What is kept of a selection, by organisation and model; damaged results left out."""

    @abstractmethod
    async def prune(self, selection: ResultSelection) -> list[KeptTotal]:
        """Remove a selection, except what was paid from a reservation whose log is still there; what went."""

    @abstractmethod
    async def shut(self) -> None:
        """Wait for what is under way and give back what is held. Using it afterwards opens it anew."""
