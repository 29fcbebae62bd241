"""A server of OpenSearch's protocol, and a store on indexes no other test has."""

import uuid

import pytest

from resources.store.opensearch.opensearch_store import OpenSearchStore
from tests.servers.fault_proxy import FaultProxy
from tests.servers.osmem_server import osmem_server
from tests.store.opensearch_server import OpenSearchServer


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    with osmem_server(tmp_path_factory.mktemp("osmem")) as url:
        yield url


@pytest.fixture
def prefix(monkeypatch):
    """A prefix no index's name has yet."""
    prefix = f"t{uuid.uuid4().hex[:12]}"
    monkeypatch.setenv("INGEST_INDEX_PREFIX", prefix)
    return prefix


@pytest.fixture
def server(url, prefix):
    with FaultProxy(url) as proxy:
        yield OpenSearchServer(url, proxy)
        assert proxy.pending() == 0


@pytest.fixture
def store(server) -> OpenSearchStore:
    return server.store()
