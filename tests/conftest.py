"""What every test package sees."""

import pytest

pytest_plugins = ["tests.servers.fixtures"]

_LONG = {"end_to_end", "dagster_ui"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs first: begun last, one of them would keep a single worker busy while the others have nothing left."""
    items.sort(key=lambda item: _LONG.isdisjoint(item.path.parts))
