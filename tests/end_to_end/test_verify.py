"""`ingest verify`: what was damaged is found and mended, without extracting anything."""

import random

import pytest

from tests.end_to_end.corruption import EXTRACTOR, damage_records, damage_rows
from tests.end_to_end.project import Project
from tests.store.raw_rows import DuckDBRows

CONFIG = """
default_embedder = "hash"
extractor = "counted:Counted"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "a"
[[stores]]
slug = "b"
[chunking]
size = 60
"""


def ingested(project: Project, n: int) -> Project:
    """The project with n documents in two stores."""
    (project.root / "counted.py").write_text(EXTRACTOR)
    project.environment["PYTHONPATH"] = str(project.root)
    project.configure(CONFIG)
    for i in range(n):
        text = "\n\n".join(f"Paragraph {j} of document {i} says that {i * j} is a number." for j in range(1 + i % 5))
        project.write(f"{i:03}.md", f"# Document {i}\n\n{text}")
    project.json("run")
    return project


def calls(project: Project) -> int:
    """How often the extractor was called."""
    return len((project.root / "calls").read_text().splitlines())


def rows_of(project: Project, store: str) -> DuckDBRows:
    """A store's rows."""
    return DuckDBRows(project.root / f".ingest/stores/{store}.duckdb")


def named(found: dict) -> set[str]:
    """The documents that differ."""
    return {difference["document_id"] for difference in found["differences"]}


@pytest.mark.parametrize("seed", range(2))
def test_random_damage_is_found_and_mended(project: Project, seed: int) -> None:
    """1% of rows, vectors, records and links damaged at random: all are named, all mended, nothing is extracted."""
    rng = random.Random(seed)
    ingested(project, 100)
    assert project.json("verify")["n_differences"] == 0
    before = calls(project)
    touched = damage_records(project, rng)
    for store in ("a", "b"):
        touched |= damage_rows(rows_of(project, store), rng)
    assert touched <= named(project.json("verify", code=1))
    mended = project.json("verify", "--repair")
    assert (mended["n_remaining"], mended["problems"]) == (0, {})
    assert project.json("verify")["n_differences"] == 0
    done = project.json("run")
    assert (done["n_requested"], calls(project)) == (0, before)
