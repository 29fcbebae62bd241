"""When a failed document is tried again by itself."""

from datetime import datetime, timedelta

import msgspec

from resources.document_state.reasons import Reason, Remedy

# After a ceiling of spending held work back. Looking again costs reading and parsing, and pays for nothing.
HELD_BACK_FOR = timedelta(minutes=10)


class RetryPolicy(msgspec.Struct, frozen=True):
    """How failed documents come back: pauses grow; after `max_attempts` only a person or new content helps."""

    max_attempts: int = 5
    first_pause: timedelta = timedelta(seconds=30)
    factor: float = 4.0
    longest_pause: timedelta = timedelta(hours=6)

    def next_attempt_at(self, reason: Reason, attempts: int, now: datetime) -> datetime | None:
        """When to try again by ourselves after the `attempts`-th failure, or None."""
        if reason.remedy is not Remedy.MAY_HEAL or attempts >= self.max_attempts:
            return None
        return now + self._pause(attempts)

    def next_removal_at(self, attempts: int, now: datetime) -> datetime:
        """When to try a removal again: without end, for what is gone from its source must not stay findable."""
        return now + self._pause(attempts)

    def _pause(self, attempts: int) -> timedelta:
        try:
            return min(self.first_pause * self.factor ** (attempts - 1), self.longest_pause)
        except OverflowError:
            return self.longest_pause
