"""A wall clock that is set while the tests run, as administrators and time servers do."""

import time
from datetime import datetime, timedelta, tzinfo

from resources import clock

HOUR = timedelta(hours=1)
STEPS = [HOUR, -HOUR]


class WallClock:
    """What this process takes for the time: the real one and all steps so far. Monotonic clocks never step."""

    def __init__(self, monkeypatch) -> None:
        self._ahead = timedelta(0)
        real = time.time
        monkeypatch.setattr(clock, "datetime", self)
        monkeypatch.setattr(time, "time", lambda: real() + self._ahead.total_seconds())

    def step(self, by: timedelta) -> None:
        """Set it forward, or back."""
        self._ahead += by

    def now(self, zone: tzinfo) -> datetime:
        """See datetime.now."""
        return datetime.now(zone) + self._ahead
