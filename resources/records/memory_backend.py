"""Records in a dict, for tests: the same contract, one process."""

import threading
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from resources.records.backend import RecordBackend
from resources.records.record import DueKey, OpenKey, Record, Stamp, Write


class MemoryBackend(RecordBackend):
    """Keeps records in this process; one lock makes each call atomic."""

    uri = "memory://"

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Record]] = {}
        self._lock = threading.Lock()

    async def _read(self, kind: str, keys: Collection[str]) -> dict[str, Record]:
        with self._lock:
            records = self._kinds.get(kind, {})
            return {key: records[key] for key in keys if key in records}

    async def _write(self, kind: str, writes: Sequence[tuple[Write, Stamp]]) -> list[bool]:
        with self._lock:
            records = self._kinds.setdefault(kind, {})
            return [_apply(records, write, stamp) for write, stamp in writes]

    async def _list(self, kind: str, after: str, limit: int, labels: Collection[str] | None) -> list[Record]:
        with self._lock:
            records = self._kinds.get(kind, {})
            keys = sorted(k for k, r in records.items() if k > after and (labels is None or r.label in labels))
            return [records[key] for key in keys[:limit]]

    async def _list_keys(self, kind: str, labels: Collection[str]) -> list[str]:
        with self._lock:
            return sorted(key for key, record in self._kinds.get(kind, {}).items() if record.label in labels)

    async def _list_open(self, kind: str) -> list[OpenKey]:
        with self._lock:
            return sorted(
                OpenKey(key, record.label) for key, record in self._kinds.get(kind, {}).items() if record.open
            )

    async def _list_due(self, kind: str, now: datetime, limit: int | None, after: DueKey | None) -> list[DueKey]:
        with self._lock:
            due = [DueKey(r.due_at, k) for k, r in self._kinds.get(kind, {}).items() if r.due_at and r.due_at <= now]
        return sorted(d for d in due if after is None or d > after)[:limit]

    async def _list_kinds(self) -> list[str]:
        with self._lock:
            return sorted(kind for kind, records in self._kinds.items() if records)

    async def _count_labels(self, kind: str) -> dict[str, int]:
        with self._lock:
            return dict(Counter(record.label for record in self._kinds.get(kind, {}).values()))

    async def close(self) -> None:
        """Forget everything."""
        self._kinds.clear()


def _apply(records: dict[str, Record], write: Write, stamp: Stamp) -> bool:
    current = records.get(write.key)
    if (current.stamp if current else None) != write.expected:
        return False
    if write.value is None:
        records.pop(write.key, None)
    else:
        records[write.key] = Record(write.key, write.value, stamp, write.due_at, write.label, write.open)
    return True
