"""What every test package sees."""

import os
import shutil
from pathlib import Path

import pytest

pytest_plugins = ["tests.servers.fixtures"]

_LONG = {"end_to_end", "dagster_ui"}
_MEMORY = Path("/dev/shm")
_ROOMY_BYTES = 4 * 2**30
_ROOT_OF_FOLDERS = "PYTEST_DEBUG_TEMPROOT"  # pytest's own variable


def pytest_configure() -> None:
    """Keep the tests' folders in memory where that is roomy: a test loses nothing in a power cut.

    On a disk most of what a test of SQLite takes is waiting for it: 12 ms a commit, in memory 0.01 (measured).
    """
    if _ROOT_OF_FOLDERS not in os.environ and _is_roomy(_MEMORY):
        os.environ[_ROOT_OF_FOLDERS] = str(_MEMORY)


def _is_roomy(folder: Path) -> bool:
    """Whether it has room, and programs in it may be executed; containers often have neither."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free > _ROOMY_BYTES


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs first: begun last, one of them would keep a single worker busy while the others have nothing left."""
    items.sort(key=lambda item: _LONG.isdisjoint(item.path.parts))
