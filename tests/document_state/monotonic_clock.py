"""The clock by which workers and their watchers count leases, moved by the tests: a slow machine changes nothing."""

from datetime import timedelta

from resources.document_state import workers


class MonotonicClock:
    """Stands where `workers` has the module `time`, of which it uses `monotonic` alone."""

    def __init__(self, monkeypatch) -> None:
        self._seconds = 1_000.0
        monkeypatch.setattr(workers, "time", self)

    def monotonic(self) -> float:
        """See time.monotonic."""
        return self._seconds

    def pass_by(self, span: timedelta) -> None:
        """Let time pass."""
        self._seconds += span.total_seconds()
