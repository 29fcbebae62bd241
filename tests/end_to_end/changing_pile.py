"""A project whose documents change while commands over it are killed, and what they are to be whoever was killed."""

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence

from resources.artifact_store.artifact import Artifact
from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import DocStatus
from resources.records.uri import open_backend
from tests.end_to_end.corruption import EXTRACTOR
from tests.end_to_end.project import Project
from tests.end_to_end.two_stores import SLUGS, TwoStores
from tests.store.raw_rows import Table

_N = 60
_KILLED = -9
_CONFIG = """
default_embedder = "hash"
extractor = "counted:Counted"
[[sources]]
name = "docs"
uri = "docs"
[chunking]
size = 100
[runs]
group = 10
"""
# Each raised version makes every document stale, and another artifact of it.
_VERSIONED = EXTRACTOR.replace('version = "1"', 'version = pathlib.Path(__file__).with_name("version").read_text()')


class ChangingPile:
    """Changes the files, starts commands and kills them.

    Attributes:
        versions: which text each file has, by name; of those only whose documents nobody has tried to delete.
        corrected: what a person has put in the place of a chunk, by name.
        deleted: names of documents whose deletion was said to be done.
    """

    def __init__(self, project: Project, rng: random.Random, stores: TwoStores, state: str = "") -> None:
        """Write the first files; `state` is the URI of the state store, "" for the default one."""
        self.project = project
        self._stores = stores
        self._state = state or "sqlite:///.ingest/state.db"
        self.versions: dict[str, int] = {}
        self.corrected: dict[str, str] = {}
        self.deleted: set[str] = set()
        self._rng = rng
        self._n_written = self._extractor_version = 0
        self._seconds: defaultdict[str, float] = defaultdict(lambda: 1.5)  # how long commands take that live
        project.environment["PYTHONPATH"] = str(project.root)
        project.configure(f'document_state_store = "{self._state}"\n{_CONFIG}{stores.tables}')
        (project.root / "counted.py").write_text(_VERSIONED)
        self._raise_extractor_version()
        for _ in range(_N):
            self._add()

    def records(self) -> dict[str, DocStatus]:
        """Every record, by the name of its file."""

        async def read() -> list[DocStatus]:
            backend = open_backend(self._state, self.project.root)
            docs = [doc async for doc in RecordDocumentStateStore(backend).iter_statuses()]
            await backend.close()
            return docs

        return {doc.source_uri.removeprefix("docs:"): doc for doc in asyncio.run(read())}

    def texts(self, store: str) -> dict[str, set[str]]:
        """The texts a store holds, by document, also of documents of which it has nothing but other rows."""
        rows = self._stores.rows_of(self.project, store)
        found: dict[str, set[str]] = {row.document_id: set() for table in Table for row in rows.all(table)}
        for document_id, text in rows.chunk_texts():
            found[document_id].add(text)
        return found

    @property
    def artifacts(self) -> SqliteArtifactStore:
        """Where artifacts are kept."""
        return SqliteArtifactStore(self.project.root / ".ingest/artifacts/artifacts.db")

    def change(self) -> None:
        """What people do between two commands: correct a chunk, change files, remove one, add one."""
        if self._rng.random() < 0.4:
            self._correct(self._any(1)[0])
        for name in self._any(6):
            self._write(name, self.versions[name] + 1)
        [gone] = self._any(1)
        (self.project.docs / gone).unlink()
        self._forget([gone])
        self._add()

    def kill(self) -> list[str]:
        """Start commands and kill them at a random moment; gives those that did not come to their end."""
        commands, victims = self._commands()
        named = [" ".join(command[:2]) for command in commands]
        began = time.monotonic()
        processes = [self.project.start(*command) for command in commands]
        until = began + self._seconds[str(named)] * self._rng.uniform(0.2, 1.1)
        while time.monotonic() < until and any(process.poll() is None for process in processes):
            time.sleep(0.005)
        for process in processes:
            process.kill()
        said = [process.communicate() for process in processes]
        codes = [process.returncode for process in processes]
        # A collection that meets somebody at work ends with 1, and is to be asked for again.
        assert all(code in (0, _KILLED, int("gc" in name)) for name, code in zip(named, codes, strict=True)), said
        if _KILLED not in codes:
            self._seconds[str(named)] = time.monotonic() - began
            self.deleted.update(victims)
        self._forget(victims)
        return [name for name, code in zip(named, codes, strict=True) if code == _KILLED]

    def _commands(self) -> tuple[list[list[str]], list[str]]:
        """What is to be killed, at once, and the names of the documents that deletes."""
        stale = ["run", "--store", self._rng.choice(SLUGS), "--stale"]
        commands = {
            "new": [["run"]],
            "force": [["run", "--force"]],
            "stale": [stale],
            "delete": [["delete", "--yes"]],
            "gc": [["gc"]],
            "stale, gc": [stale, ["gc", "--wait"]],
        }
        kind = self._rng.choice(list(commands))
        if stale in commands[kind]:
            self._raise_extractor_version()
        victims = self._any(3) if kind == "delete" else []
        return [[*command, *(f"docs:{name}" for name in victims)] for command in commands[kind]], victims

    def _any(self, n: int) -> list[str]:
        return self._rng.sample(sorted(self.versions), n)

    def _add(self) -> None:
        self._n_written += 1
        self._write(f"{self._n_written:03}.md", 1)

    def _write(self, name: str, version: int) -> None:
        says = [f"Paragraph {number} of document {name}, which is now in its version {version}." for number in range(4)]
        self.project.write(name, "\n\n".join([f"# Document {name}, version {version}.", *says]))
        self._forget([name])
        self.versions[name] = version

    def _correct(self, name: str) -> None:
        """Correct the last chunk of a document that is done."""
        [artifact] = self.artifacts.get_many([self.records()[name].artifact]).values()
        text = f"Corrected, in version {self.versions[name]}."
        path = self.project.root / "correction.jsonl"
        path.write_text(json.dumps({"chunk_id": artifact.chunks[-1].chunk_id, "text": text}))
        done = self.project.run("chunks", "edit", f"docs:{name}", "--file", str(path), "--by", "ann")
        assert done.returncode == 0, done.stderr
        self.corrected[name] = text

    def _forget(self, names: Sequence[str]) -> None:
        for name in names:
            self.versions.pop(name, None)
            self.corrected.pop(name, None)

    def _raise_extractor_version(self) -> None:
        self._extractor_version += 1
        (self.project.root / "version").write_text(str(self._extractor_version))


def texts_of(artifact: Artifact) -> set[str]:
    """The texts of an artifact's chunks."""
    return {chunk.text for chunk in artifact.chunks}
