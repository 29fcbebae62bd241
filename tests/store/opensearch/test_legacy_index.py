"""An index that another program filled is searched too."""

import pytest

from resources.store.store import Removal, StoreConfigError, StoreMismatchError
from tests.store.contract import build, search


class TestLegacyIndex:
    @pytest.fixture
    def legacy(self, server, prefix):
        """An index another program filled: two documents of `default`, one of somebody else."""
        name = f"{prefix}.old"
        keyword = {"type": "keyword"}
        fields = dict.fromkeys(("document_id", "org_id", "source", "chunk_id"), keyword)
        vector = {"type": "knn_vector", "dimension": 64}
        server.ask("PUT", f"/{name}", {"mappings": {"properties": fields | {"embedding": vector}}})
        for document_id, org_id in (("a", "default"), ("old", "default"), ("x", "other")):
            given = build(document_id, [f"legacy {document_id}"])
            [chunk] = given.chunks
            row = {"document_id": document_id, "org_id": org_id, "source": "docs", "chunk_id": chunk.chunk_id}
            row |= {
                "text": chunk.text,
                "title": "T",
                "source_uri": "u",
                "embedding": given.vectors[chunk.chunk_id].tolist(),
            }
            server.ask("POST", f"/{name}/_doc?refresh=true", row)
        server.ask("POST", f"/{name}/_doc?refresh=true", {"org_id": "default", "note": "no chunk at all"})
        return name

    def test_is_searched_too(self, server, legacy):
        """It is read before anything is written, and beside it, inside the tenant and the filters."""
        store = server.store(legacy_index=legacy, legacy_vector_field="embedding")
        [hit] = search(store, "legacy old", 1)
        assert (hit.text, hit.title, hit.source_uri, hit.score) == ("legacy old", "T", "u", pytest.approx(1))
        store.write([build("b", ["ours"])])
        assert {hit.text for hit in search(store, "anything")} == {"legacy a", "legacy old", "ours"}
        assert [hit.text for hit in search(store, "anything", document_id="old")] == ["legacy old"]

    def test_what_we_hold_has_the_say(self, server, legacy):
        """A document built or removed by us is not read from there any more, and nothing there is written."""
        store = server.store(legacy_index=legacy, legacy_vector_field="embedding")
        store.write([build("a", ["ours"])])
        store.remove([Removal("old", 1)])
        assert [hit.text for hit in search(store, "legacy a", 1)] == ["ours"]
        assert [hit.text for hit in search(store, "anything")] == ["ours"]
        store.drop()
        assert server.ask("GET", f"/{legacy}/_count")["count"] == 4
        assert {hit.text for hit in search(store, "anything")} == {"legacy a", "legacy old"}

    def test_is_not_there(self, server, prefix):
        """A name that is wrong is said."""
        with pytest.raises(StoreConfigError, match="legacy_index"):
            search(server.store(legacy_index=f"{prefix}.none"), "one")

    def test_other_vectors(self, server, legacy):
        """Vectors that cannot be the embedder's are refused."""
        with pytest.raises(StoreMismatchError, match="64 numbers in its field 'vector'"):
            search(server.store(legacy_index=legacy), "one")
