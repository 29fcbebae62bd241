"""The OpenSearch store: the contract on a server of its protocol, and its own."""

import pytest

from resources.embedder.hash_embedder import HashEmbedder
from resources.store.opensearch_address import OpenSearchConfig
from resources.store.opensearch_store import OpenSearchStore
from resources.store.store import Store
from tests.servers.osmem_server import osmem_server
from tests.store.contract import StoreContract

STAMP = HashEmbedder.stamp()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with osmem_server(tmp_path_factory.mktemp("osmem")) as url:
        yield url


@pytest.fixture
def prefix(monkeypatch, request):
    import uuid

    monkeypatch.setenv("INGEST_INDEX_PREFIX", "t" + uuid.uuid4().hex)


class TestOpenSearchStore(StoreContract):
    @pytest.fixture
    def store(self, url, prefix) -> Store:
        """See `StoreContract.store`."""
        return OpenSearchStore("test", STAMP, OpenSearchConfig(url=url, search="client"))

    def reopened(self, store, stamp) -> Store:
        """See `StoreContract.reopened`."""
        return OpenSearchStore(store.slug, stamp, store._config)
