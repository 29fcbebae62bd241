"""How long a run was at each stage."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable

from resources.document_state.ingest_jobs import JobStage


class StageClock:
    """Seconds by stage. A run is at one stage at any moment, the latest that one of its batches has entered.

    So they add up to the time since the first one. Read by the heartbeat's thread while the run goes on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._stage: JobStage | None = None
        self._since = 0.0
        self._lock = threading.Lock()

    def enters(self, stage: JobStage) -> None:
        """The run is at this stage from now on."""
        with self._lock:
            self._book()
            self._stage = stage

    def seconds(self) -> dict[str, float]:
        """Up to now, rounded to milliseconds."""
        with self._lock:
            self._book()
            return {stage: round(seconds, 3) for stage, seconds in self._seconds.items()}

    def _book(self) -> None:
        now = self._clock()
        if self._stage is not None:
            self._seconds[self._stage.value] += now - self._since
        self._since = now
