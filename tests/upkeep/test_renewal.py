"""A store begins anew with another embedder: emptied, owed what it had, whatever dies or races on the way."""

import pytest

from ingest_assets.components import Components
from ingest_assets.engine.build_stage import BuildStage
from ingest_assets.settings import Settings, StoreSettings
from ingest_assets.upkeep import renewal
from ingest_assets.upkeep.renewal import begin_anew, documents_in, n_not_found, refusing_stores
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.model import LinkState, Status
from resources.records.sqlite_backend import SqliteBackend
from resources.store.store import StoreUnavailableError
from tests.upkeep.corrected_documents import published

IDS = ["a", "b", "c"]


def settings(tmp_path, embedder: str) -> Settings:
    """A store `default` with an embedder, and another one."""
    stores = (StoreSettings(slug="default", embedder=embedder), StoreSettings(slug="other", embedder="hash"))
    return Settings(stores=stores, base=tmp_path, extractor="none")


async def components_of(tmp_path, embedder: str) -> Components:
    """The parts of a command, as it begins."""
    components = Components(settings(tmp_path, embedder), SqliteBackend(tmp_path / "state.db"))
    await components.register_stores()
    return components


@pytest.fixture
async def built(tmp_path) -> Components:
    """Documents in two stores, whose default one is configured for another embedder since."""
    async with await components_of(tmp_path, "hash") as components:
        for document_id in IDS:
            await published(components, ["one", "two"], document_id, stores=("default", "other"))
            await fill(components, document_id)
    async with await components_of(tmp_path, "wordllama") as components:
        yield components


async def fill(components: Components, document_id: str) -> None:
    """Write a document's chunks into the default store, with the embedder that is configured."""
    doc = await components.state.get_status(document_id)
    [artifact] = components.artifacts.get_many([doc.artifact]).values()
    built = BuildStage(await components.target("default")).write([doc], {document_id: artifact})
    assert built[document_id].reason is None


async def states(components: Components, store: str) -> set[tuple[LinkState, Status]]:
    """How the documents stand in a store, and their builds."""
    docs = (await components.state.get_many(IDS)).values()
    return {(doc.links[store].state, doc.build.status) for doc in docs}


async def test_the_record_keeps_the_embedder_of_the_data(built) -> None:
    """Naming another embedder changes no record while the store holds vectors, and the store refuses them."""
    assert (await built.store_registry.all())["default"].embedder == "hash"
    assert await refusing_stores(built, ["default", "other"]) == ["default"]


async def test_emptied_and_owed(built) -> None:
    """The data goes, each document is owed there and due, the record has the new embedder; the other store is left."""
    before = {key: doc.links["other"] for key, doc in (await built.state.get_many(IDS)).items()}
    assert await begin_anew(built, "default") == len(IDS)
    assert await states(built, "default") == {(LinkState.STALE, Status.PENDING)}
    assert {key: doc.links["other"] for key, doc in (await built.state.get_many(IDS)).items()} == before
    assert (await built.target("default")).store.held_documents() == []
    assert (await built.store_registry.all())["default"].embedder == "wordllama"
    assert await built.state.list_due(utc_now(), 10) == IDS
    assert await n_not_found(built, "default") == len(IDS)


async def test_death_after_the_data_went(built, monkeypatch) -> None:
    """Whoever dies before the records are told leaves an empty store; asked again, the same is done."""

    async def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(renewal, "_owe_documents", die)
        with pytest.raises(KeyboardInterrupt):
            await begin_anew(built, "default")
    assert await refusing_stores(built, ["default"]) == []
    assert await n_not_found(built, "default") == len(IDS)
    assert await begin_anew(built, "default") == len(IDS)
    assert await begin_anew(built, "default") == len(IDS)


async def test_refused_while_somebody_works(built) -> None:
    """A document in a worker's hands may be written with the old embedder any moment: the store is left as it is."""
    doc = await built.state.get_status("b")
    await built.state.set_status("b", transitions.claimed(doc, "w", "run", utc_now(), extract=False), expected=doc)
    with pytest.raises(StoreUnavailableError, match="1 of its documents are being worked on"):
        await begin_anew(built, "default")
    assert len((await built.target("default")).store.held_documents()) == len(IDS)


async def test_what_is_in_a_store(built) -> None:
    """Every link counts, whatever its state; a document that never was there is none that is not found."""
    await published(built, ["three"], "d", stores=("other",))
    assert await documents_in(built.state, "default") == IDS
    assert await documents_in(built.state, "other") == [*IDS, "d"]
    assert await n_not_found(built, "other") == 0
