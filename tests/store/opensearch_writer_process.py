"""What the other processes of the OpenSearch store's tests do; they are spawned, so it must be importable."""

import os

from resources.embedder.hash_embedder import HashEmbedder
from resources.store.opensearch.address import OpenSearchConfig
from resources.store.opensearch.opensearch_store import OpenSearchStore
from tests.store.contract import build
from tests.store.writer_process import N_DOCUMENTS, texts_at


def write_for_ever(url: str, prefix: str, name: str, started) -> None:
    """Write the same documents in one version after another until killed."""
    os.environ["INGEST_INDEX_PREFIX"] = prefix
    store = OpenSearchStore("test", HashEmbedder.stamp(), OpenSearchConfig(url=url, search="client"))
    version = 0
    while True:
        version += 1
        ids = [f"{name}{i}" for i in range(N_DOCUMENTS)]
        store.write([build(document_id, texts_at(version, document_id), token=version) for document_id in ids])
        started.set()
