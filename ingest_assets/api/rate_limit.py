"""How often somebody may ask: a bucket each that fills up again with time."""

import time
from collections import OrderedDict

_MOST_BUCKETS = 10_000


class RateLimit:
    """Up to `per_minute` requests at once, and as many each minute, for each key. Of one event loop."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._most = float(per_minute)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, key: str) -> float:
        """Take one request from a key's bucket; 0 if there was one, else how long until there is."""
        now = time.monotonic()
        left, then = self._buckets.pop(key, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_second)
        allowed = left >= 1
        self._buckets[key] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)  # the one that asked longest ago, so most likely a full one
        return 0.0 if allowed else (1 - left) / self._per_second
