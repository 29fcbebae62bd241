"""What the other processes of the pgvector store's tests do; they are spawned, so it must be importable."""

from resources.embedder.hash_embedder import HashEmbedder
from resources.store.pgvector.address import PgvectorConfig
from resources.store.pgvector.pgvector_store import PgvectorStore
from tests.store.contract import build
from tests.store.writer_process import N_DOCUMENTS, texts_at


def write_for_ever(url: str, schema: str, name: str, started) -> None:
    """Write the same documents in one version after another until killed."""
    store = PgvectorStore("test", HashEmbedder.stamp(), PgvectorConfig(url=url, schema=schema))
    version = 0
    while True:
        version += 1
        ids = [f"{name}{i}" for i in range(N_DOCUMENTS)]
        store.write([build(document_id, texts_at(version, document_id), token=version) for document_id in ids])
        started.set()
