"""Where the server is, who we are there, and what may not be said."""

import pytest

from resources.embedder.embedder import EmbedderStamp
from resources.store.open_store import open_store
from resources.store.store import StoreConfigError
from tests.servers.exchange import Answer
from tests.store.contract import search
from tests.store.opensearch_server import STAMP


class TestAddress:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "url"),
            ({"url": "search.example.org"}, "no address"),
            ({"url": "https://h:port"}, "no address"),
            ({"url": "https://user:geheim@h:9200"}, "holds a user or password"),
            ({"url": "https://h", "username_env": "U"}, "go together"),
            ({"url": "http://h", "username_env": "U", "password_env": "P"}, "https only"),
            ({"url": "https://h", "search": "magic"}, "search"),
            ({"url": "https://h", "indx": "x"}, "unknown option 'indx'"),
        ],
    )
    def test_wrong_options(self, options, message):
        """What is wrong is said without repeating a secret."""
        with pytest.raises(StoreConfigError, match=f"'legal'.*{message}") as caught:
            open_store("opensearch", "legal", STAMP, options)
        assert "geheim" not in str(caught.value)

    @pytest.mark.parametrize("prefix", ["Upper", "-x", "a b", "x" * 250])
    def test_wrong_prefix(self, monkeypatch, prefix):
        """A prefix no index's name can have is told before anybody is asked."""
        monkeypatch.setenv("INGEST_INDEX_PREFIX", prefix)
        with pytest.raises(StoreConfigError, match="name"):
            open_store("opensearch", "legal", STAMP, {"url": "https://h"})

    def test_default_prefix(self, monkeypatch):
        """Without a prefix the index is `ingest-<slug>`, dots and dashes included."""
        monkeypatch.delenv("INGEST_INDEX_PREFIX", raising=False)
        assert open_store("opensearch", "legal-v1.2", STAMP, {"url": "https://h"})._index.name == "ingest-legal-v1.2"

    def test_credentials_come_from_the_environment(self, server, monkeypatch, caplog):
        """They are sent, read anew at each call, asked for by name when missing, and stand in no message or log."""
        caplog.set_level("DEBUG")
        store = server.store(username_env="SEARCH_USER", password_env="SEARCH_PASSWORD")
        with pytest.raises(StoreConfigError, match="SEARCH_USER is not set"):
            search(store, "one")
        sent = []

        def refuse(request, forward):
            sent.append(request.headers["Authorization"])
            return Answer(401, b'{"error": "no"}', [("Content-Type", "application/json")])

        for password in ("geheim1", "geheim2"):
            monkeypatch.setenv("SEARCH_USER", "ingest")
            monkeypatch.setenv("SEARCH_PASSWORD", password)
            server.proxy.inject(refuse)
            with pytest.raises(StoreConfigError) as caught:
                search(store, "one")
            assert "geheim" not in f"{caught.value} {caught.value.__cause__}"
        assert len(set(sent)) == 2
        assert all(header.startswith("Basic ") for header in sent)
        assert not any(word in caplog.text for word in ("geheim", *(header.split()[1] for header in sent)))

    def test_certificates_are_verified(self):
        """Verification is on unless it is turned off by name."""
        for options, verified in (({}, True), ({"verify_certs": False}, False)):
            store = open_store("opensearch", "legal", STAMP, {"url": "https://h", **options})
            connection = store._index.cluster._driver().transport.get_connection()
            required = connection.pool.cert_reqs if connection.pool else connection.pool_cert_reqs
            assert (required == "CERT_REQUIRED") == verified

    def test_too_wide_an_embedder(self):
        """What the plugin cannot hold is said before anything is written."""
        with pytest.raises(StoreConfigError, match="16000"):
            open_store("opensearch", "legal", EmbedderStamp("wide", "1", 16_001), {"url": "https://h"})
