"""Projects of the end-to-end tests."""

from pathlib import Path

import pytest

from tests.end_to_end.project import SAMPLES, Project


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
