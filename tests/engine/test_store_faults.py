"""A store or its embedder at fault: the reason says what helps, and the other stores have every document."""

import pytest

from ingest_assets.engine.build_stage import BuildStage
from ingest_assets.targets import Target
from resources.document_state.model import LinkState
from resources.document_state.reasons import Reason
from resources.embedder.hash_embedder import HashEmbedder
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import (
    StoreConfigError,
    StoreCorruptError,
    StoreError,
    StoreMismatchError,
    StoreTooNewError,
    StoreUnavailableError,
)
from tests.engine.workshop import STAMP


class Faulty(DuckDBStore):
    """A real store that answers each write with an error."""

    error: type[StoreError] = StoreError

    def write(self, builds):
        """See Store."""
        del builds
        raise self.error(self.slug, "said no")


class Short(HashEmbedder):
    """An embedder whose vectors are shorter than it says."""

    def embed(self, texts):
        """See Embedder."""
        return super().embed(texts)[:, :-1]


class Broken(HashEmbedder):
    """An embedder that fails at everything."""

    def embed(self, texts):
        """See Embedder."""
        raise RuntimeError(f"no model for {len(texts)} texts")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreUnavailableError, Reason.STORE_UNAVAILABLE),
        (StoreConfigError, Reason.STORE_MISCONFIGURED),
        (StoreMismatchError, Reason.STORE_MISMATCH),
        (StoreCorruptError, Reason.STORE_DAMAGED),
        (StoreTooNewError, Reason.STORE_DAMAGED),
    ],
)
async def test_each_fault_of_a_store_has_its_reason(shop, error, reason) -> None:
    """A store's fault marks its own links, with the reason of that fault; the other store has every document."""
    faulty = shop.stores["faulty"] = Faulty("faulty", shop.folder / "faulty.duckdb", STAMP)
    faulty.error = error
    for i in range(3):
        shop.put(f"{i}.md", f"text {i}")
    await shop.discover()
    await shop.pull()
    for i in range(3):
        doc = await shop.doc(f"{i}.md")
        assert (doc.links["faulty"].state, doc.links["faulty"].reason) == (LinkState.FAILED, reason)
        assert doc.links["s"].state is LinkState.INGESTED
        assert (doc.build.next_attempt_at is None) == (reason is not Reason.STORE_UNAVAILABLE)
    assert len(shop.held("s")) == 3


@pytest.mark.parametrize(("embedder", "said"), [(Short, "shape (3, 63)"), (Broken, "RuntimeError: no model")])
async def test_a_fault_of_an_embedder(shop, embedder, said) -> None:
    """An embedder that raises, or gives vectors of another length than it promises, is named and writes nothing."""
    for i in range(3):
        shop.put(f"{i}.md", f"text {i}")
    await shop.discover()
    await shop.pull()
    stage = BuildStage(Target(shop.duckdb("t"), embedder(), {}))
    docs = [await shop.doc(f"{i}.md") for i in range(3)]
    artifacts = shop.artifacts.get_many([doc.artifact for doc in docs])
    built = stage.write(docs, {doc.document_id: artifacts[doc.artifact] for doc in docs})
    assert {one.reason for one in built.values()} == {Reason.EMBEDDER_FAILED}
    assert said.replace("3,", "1,") in built[docs[0].document_id].error
    assert shop.held("t") == {}
