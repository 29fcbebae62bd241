"""Corrected documents on their way through the engine: extracted again, built, touched, changed, lost."""

import sqlite3

import msgspec
import pytest

from ingest_assets.components import Components
from ingest_assets.settings import Settings
from ingest_assets.upkeep.correcting import edit_chunks, read_chunks
from ingest_assets.upkeep.edits import Edit
from resources.artifact_store.corrections import Signature, corrections_of
from resources.clock import utc_now
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import LinkState, Status
from resources.extractor.local_extractor import LocalExtractor
from tests.engine.workshop import EMBEDDER

FIRST, SECOND = ("The ferry leaves the northern pier at seven. " * 18, "The gauge is read every six minutes. " * 20)


@pytest.fixture
async def corrected(shop):
    """A document of two chunks in two stores, of which the second chunk is corrected."""
    shop.extractor = LocalExtractor()
    shop.stores["t"] = shop.duckdb("t")
    shop.put("a.txt", f"{FIRST}\n\n{SECOND}")
    await shop.discover()
    await shop.pull()
    components = Components(Settings(base=shop.folder, default_embedder="hash"), shop.backend, shop.artifacts)
    _, artifact = await read_chunks(components, shop.id_of("a.txt"))
    second = artifact.chunks[1]
    edits = [Edit(1, second.chunk_id, second.text.replace("six", "ten"))]
    await edit_chunks(components, artifact.document_id, edits, Signature("ann", utc_now()))
    return components


def stored(shop, store="s"):
    """All that a store holds, as one text."""
    hits = shop.duckdb(store).search(EMBEDDER.embed(["anything"])[0], 100, org_id="default")
    return " ".join(hit.text for hit in hits)


async def artifact_of(corrected, shop):
    """What the record names."""
    return (await read_chunks(corrected, shop.id_of("a.txt")))[1]


async def test_nobody_takes_it_up(shop, corrected):
    """A pull run finds nothing due, and a run over the document by name reports it as it is."""
    before = await shop.doc("a.txt")
    assert (await shop.pull()).reports == []
    assert (await shop.work_on("a.txt", named=True)).outcomes == {"a.txt": Outcome.UNCHANGED}
    assert {link.state for link in (await shop.doc("a.txt")).links.values()} == {LinkState.STALE}
    assert (await shop.doc("a.txt")).artifact == before.artifact


async def test_one_store_is_rebuilt_on_request(shop, corrected):
    """Only there the correction is found, nothing is extracted, and the other store is as it was."""
    parsed, before = shop.pool.n_parsed, await shop.doc("a.txt")
    reports = await shop.work_on("a.txt", stores=("s",), named=True, renew_stores=True, only_due=True)
    assert reports.outcomes == {"a.txt": Outcome.SUCCEEDED}
    doc = await shop.doc("a.txt")
    assert doc.links["s"].state is LinkState.INGESTED
    assert doc.links["t"] == before.links["t"]
    assert shop.pool.n_parsed == parsed
    assert "ten minutes" in stored(shop)
    assert "six minutes" in stored(shop, "t")


@pytest.mark.parametrize("selection", [{"force": True}, {"renew_extraction": True, "renew_stores": True}])
async def test_extracted_again(shop, corrected, selection):
    """Forced, or by another configuration that gives the same chunks: the correction is there as it was made."""
    before = await artifact_of(corrected, shop)
    if "renew_extraction" in selection:
        shop.config_parts["chunker"] = "c2"
    assert (await shop.work_on("a.txt", named=True, **selection)).outcomes == {"a.txt": Outcome.SUCCEEDED}
    parts = before.parts | {"chunker": shop.config_parts["chunker"]}
    assert await artifact_of(corrected, shop) == msgspec.structs.replace(before, parts=parts)
    doc = await shop.doc("a.txt")
    assert (doc.corrections.n, {link.state for link in doc.links.values()}) == (1, {LinkState.INGESTED})
    assert "ten minutes" in stored(shop)


async def test_extracted_again_for_one_store(shop, corrected):
    """Another store stays as it was left: stale, and owed nothing."""
    shop.config_parts["chunker"] = "c2"
    await shop.work_on("a.txt", stores=("s",), named=True, renew_stores=True, renew_extraction=True, only_due=True)
    doc = await shop.doc("a.txt")
    assert (doc.links["t"].state, doc.links["t"].on_request) == (LinkState.STALE, True)
    assert doc.build.status is Status.COMPLETED


async def test_touched(shop, corrected):
    """The file is written anew with the same content: the correction stays, and no store is rebuilt by that."""
    before = await artifact_of(corrected, shop)
    shop.put("a.txt", f"{FIRST}\n\n{SECOND}")
    assert len((await shop.discover()).changed) == 1
    await shop.pull()
    doc = await shop.doc("a.txt")
    assert {(link.state, link.on_request) for link in doc.links.values()} == {(LinkState.STALE, True)}
    assert (doc.build.status, await artifact_of(corrected, shop)) == (Status.COMPLETED, before)


async def test_changed_elsewhere(shop, corrected):
    """Other content around the corrected text: it is built by itself, correction and all, with nothing to warn of."""
    shop.put("a.txt", f"{'A new beginning. ' * 50}\n\n{SECOND}")
    await shop.discover()
    reports = await shop.pull()
    assert reports.results["a.txt"].n_void_corrections == 0
    doc = await shop.doc("a.txt")
    assert ({link.state for link in doc.links.values()}, doc.warnings) == ({LinkState.INGESTED}, ())
    assert "ten minutes" in stored(shop)


async def test_changed_there(shop, corrected):
    """The corrected text changed: the new one stands, and the void correction is in outcome, record and artifact."""
    shop.put("a.txt", f"{FIRST}\n\n{'The gauge was taken away. ' * 25}")
    await shop.discover()
    reports = await shop.pull()
    assert reports.results["a.txt"].n_void_corrections == 1
    doc, artifact = await shop.doc("a.txt"), await artifact_of(corrected, shop)
    assert [chunk.correction.by for chunk in artifact.void_corrections] == ["ann"]
    assert doc.warnings == ("1 correction is void: the document does not have the corrected text any more.",)
    assert "taken away" in stored(shop)
    shop.put("a.txt", f"{FIRST}\n\n{SECOND}")
    await shop.discover()
    await shop.pull()
    assert (await shop.doc("a.txt")).warnings == ()
    assert "ten minutes" in stored(shop)


async def test_lost_with_the_artifact(shop, corrected):
    """Where the artifact is gone, the document is extracted again, and a warning counts what went with it."""
    with sqlite3.connect(shop.folder / "artifacts.db") as artifacts:
        artifacts.execute("DELETE FROM artifacts")
    await shop.work_on("a.txt", stores=("s",), named=True, renew_stores=True, only_due=True)
    doc = await shop.doc("a.txt")
    assert doc.warnings == ("1 correction was lost with the artifact that held it, which is gone or damaged.",)
    assert (doc.corrections.n, corrections_of(await artifact_of(corrected, shop))) == (0, [])
    assert doc.links["s"].state is LinkState.INGESTED
