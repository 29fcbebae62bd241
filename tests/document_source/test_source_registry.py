"""Folders that are remembered as sources."""

from pathlib import Path

import pytest

from resources.document_source.source_registry import SourceRegistry
from resources.records.memory_backend import MemoryBackend


@pytest.fixture
def registry():
    return SourceRegistry(MemoryBackend())


async def test_named_after_its_folder(registry):
    """A folder is remembered under its own name, made safe."""
    found = await registry.remember(Path("/home/me/My Reports (2024)"), "default", set())
    assert (found.name, found.root, found.org_id) == ("my-reports-2024", Path("/home/me/My Reports (2024)"), "default")
    assert await registry.all() == [found]


async def test_same_folder_same_name(registry):
    """The same folder is the same source, however often it is named."""
    assert await registry.remember(Path("/a"), "o", set()) == await registry.remember(Path("/a"), "o", set())
    assert len(await registry.all()) == 1


async def test_taken_names_get_a_number(registry):
    """Folders of one name, and a name that the configuration has, are told apart by a number."""
    names = [(await registry.remember(Path(f"/{i}/docs"), "o", {"docs"})).name for i in range(3)]
    assert names == ["docs-2", "docs-3", "docs-4"]


@pytest.mark.parametrize("folder", ["/", "/...", "/日本"])
async def test_folder_without_a_usable_name(registry, folder):
    """Every folder gets some name."""
    assert (await registry.remember(Path(folder), "o", set())).name == "folder"
