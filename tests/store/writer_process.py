"""What the other processes of the store's tests do; they are spawned, so it must be importable."""

from pathlib import Path

from resources.embedder.hash_embedder import HashEmbedder
from resources.store.duckdb.duckdb_store import DuckDBStore
from tests.store.contract import build

N_DOCUMENTS = 20


def texts_at(version: int, document_id: str) -> list[str]:
    """A document's chunks in a version: some stay, some do not, and each version has its own number of them."""
    return ["stays", *(f"{document_id} version {version} part {i}" for i in range(3 + version % 4))]


def write_for_ever(path: Path, name: str, started) -> None:
    """Write the same documents in one version after another until killed."""
    store = DuckDBStore("test", path, HashEmbedder.stamp())
    version = 0
    while True:
        version += 1
        ids = [f"{name}{i}" for i in range(N_DOCUMENTS)]
        store.write([build(document_id, texts_at(version, document_id), token=version) for document_id in ids])
        started.set()


def write_versions(path: Path, name: str, n_versions: int) -> None:
    """Write the same documents in some versions, one call each."""
    store = DuckDBStore("test", path, HashEmbedder.stamp())
    for version in range(n_versions):
        ids = [f"{name}{i}" for i in range(N_DOCUMENTS)]
        store.write([build(document_id, texts_at(version, document_id), token=version) for document_id in ids])
