"""Served projects."""

from collections.abc import Iterator

import pytest

from tests.api.served import Served
from tests.end_to_end.project import SAMPLES, Project

TWO_STORES = f"""
default_embedder = "hash"
[[sources]]
name = "samples"
uri = "{SAMPLES}"
[[stores]]
slug = "default"
name = "Default"
[[stores]]
slug = "second"
"""


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose samples have been ingested once into two stores. Tests only look at it."""
    project = Project(tmp_path_factory.mktemp("served"), TWO_STORES)
    done = project.run("run")
    assert done.returncode == 1, done.stderr
    return project


@pytest.fixture(scope="session")
def served(samples: Project) -> Iterator[Served]:
    """Those samples, served to their owner."""
    with Served(samples) as server:
        yield server
