"""Projects of the end-to-end tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.project import SAMPLES, Project
from tests.end_to_end.two_stores import TwoStores, in_duckdb, in_opensearch, in_postgresql


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project with one source."""
    return Project(tmp_path)


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose samples have been ingested once. Tests only look at it."""
    config = f'[[sources]]\nname = "samples"\nuri = "{SAMPLES}"\n'
    project = Project(tmp_path_factory.mktemp("samples"), config)
    done = project.run("run")
    assert done.returncode == 1, done.stderr
    return project


@pytest.fixture(scope="module")
def duckdb_stores() -> TwoStores:
    """Two files of each project."""
    return in_duckdb()


@pytest.fixture(scope="module")
def pgvector_stores() -> Iterator[TwoStores]:
    """Two stores on a PostgreSQL of this module."""
    with in_postgresql() as stores:
        yield stores


@pytest.fixture(scope="module")
def opensearch_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoStores]:
    """Two indexes on a server of this module."""
    with in_opensearch(tmp_path_factory.mktemp("osmem")) as stores:
        yield stores
