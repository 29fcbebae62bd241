"""A repair while garbage is collected."""

import asyncio
import sqlite3
from collections.abc import Sequence

import pytest

from ingest_assets.components import Components
from ingest_assets.settings import load_settings
from ingest_assets.upkeep.collecting import Collected, collect
from ingest_assets.upkeep.verify.repair import Repair
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.records.sqlite_backend import SqliteBackend
from tests.end_to_end.project import Project

_CONFIG = """
default_embedder = "hash"
extractor = "none"
[[sources]]
name = "docs"
uri = "docs"
"""


class CollectedMeanwhile(SqliteArtifactStore):
    """Artifacts of a project in which garbage is collected between a put and the record that is to refer to it."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.root / ".ingest/artifacts/artifacts.db")
        self.collected: list[Collected] = []
        self._state_file = project.root / ".ingest/state.db"

    def put_many(self, artifacts: Sequence[Artifact]) -> list[str]:
        """See ArtifactStore."""
        keys = super().put_many(artifacts)
        self.collected.append(asyncio.run(self.collect()))
        return keys

    async def collect(self) -> Collected:
        """One collection, by another process."""
        backend = SqliteBackend(self._state_file)
        done = await collect(RecordDocumentStateStore(backend), self, backend, lambda _: None)
        await backend.close()
        return done


def test_what_a_repair_found_is_not_collected(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The artifact of a lost record is waited for while the record is made again, and stays then."""
    project.configure(_CONFIG)
    for i in range(3):
        project.write(f"{i}.md", f"# Document {i}\n\nText {i}.")
    project.json("run")
    with sqlite3.connect(project.root / ".ingest/state.db") as state:
        state.execute("DELETE FROM records WHERE kind = 'document' AND key LIKE '1.md%'")
    artifacts = CollectedMeanwhile(project)
    components = Components(load_settings({"INGEST_CONFIG": str(project.root / "ingest.toml")}), None, artifacts)
    targets = asyncio.run(components.targets())
    verified = Repair(components, targets, None).run(None, repair=True)
    assert (len(verified.found) > 0, verified.remaining, verified.problems) == (True, [], {})
    assert [done.n_workers for done in artifacts.collected] == [1]
    assert asyncio.run(artifacts.collect()) == Collected(n_artifacts=0, n_kept=3)
    assert project.json("verify")["n_differences"] == 0
