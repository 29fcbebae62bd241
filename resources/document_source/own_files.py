"""What this program keeps: no source gives it, wherever it lies."""

import os
from collections.abc import Iterable
from pathlib import Path

# What SQLite, DuckDB and our locks put beside a file, under its name and more.
_BESIDE = (b"-wal", b"-shm", b"-journal", b".wal", b".tmp", b".new", b".lock", b".lock.gate")


class OwnFiles:
    """Files and folders of our own, whether they exist already or not."""

    def __init__(self, places: Iterable[Path] = ()) -> None:
        self._paths = frozenset(os.path.realpath(os.fsencode(place)) for place in places)

    def has(self, path: bytes) -> bool:
        """Whether a path, free of links, is one of them, or is put beside one."""
        if path in self._paths:
            return True
        return path.endswith(_BESIDE) and any(path.removesuffix(end) in self._paths for end in _BESIDE)

    def holds(self, path: bytes) -> bool:
        """Whether a path, free of links, is one of them or lies in one."""
        while not self.has(path):
            above = os.path.dirname(path)  # noqa: PTH120 - bytes paths: names that are no text
            if above == path:
                return False
            path = above
        return True


NO_OWN_FILES = OwnFiles()
