"""What the other processes of these tests do; they are spawned, so it must be importable."""

from multiprocessing.connection import Connection
from pathlib import Path

from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from tests.artifact_store.contract import artifact


def put_for_ever(path: Path, name: str, to_parent: Connection) -> None:
    """Put groups of artifacts until killed; tell the keys of each group after the store returned them."""
    store = SqliteArtifactStore(path)
    number = 0
    while True:
        group = [artifact(f"{name}-{number}-{i}", f"text {i} " * 100) for i in range(20)]
        to_parent.send(store.put_many(group))
        number += 1
