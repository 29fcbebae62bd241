"""A store that comes back, or is another one, is brought to the truth; what it lacks waits until somebody asks."""

import shutil

import numpy as np

from ingest_assets.upkeep.settling import Settled, settle
from resources.clock import utc_now
from resources.document_state import removals, transitions
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import LinkState, Presence, Status
from tests.engine.faulty_parts import Unavailable
from tests.engine.workshop import STAMP

KEYS = ("same.md", "changed.md", "vanished.md", "erased.md", "restored.md")
OLD = {key: f"old text of {key}" for key in KEYS}


async def filled(shop) -> None:
    """Documents in two stores."""
    shop.stores["t"] = shop.duckdb("t")
    for key, text in OLD.items():
        shop.put(key, text)
    await shop.discover()
    await shop.pull()


async def change(shop) -> None:
    """Whatever can become of documents: one changes, one is gone, two are deleted and one of them restored, one new."""
    shop.put("changed.md", "new text")
    shop.put("new.md", "a new one")
    (shop.root / "vanished.md").unlink()
    await shop.discover()
    for key in ("erased.md", "restored.md"):
        doc = await shop.doc(key)
        await shop.state.set_many([(removals.deletion_requested(doc, utc_now()), doc)])
    await shop.pull()
    doc = await shop.doc("restored.md")
    await shop.state.set_many([(removals.restored(doc, tuple(shop.stores), utc_now()), doc)])
    await shop.pull()


def texts(shop, store: str) -> dict[str, str]:
    """What a search finds of each document in a store, by its key."""
    anything = np.ones(STAMP.dimension, dtype=np.float32)
    hits = shop.duckdb(store).search(anything, 99, org_id="default")
    return {hit.source_uri.partition(":")[2]: hit.text for hit in hits}


async def test_a_store_comes_back(shop):
    """What is gone leaves it, whoever removed it; what changed is replaced; what never was there waits to be asked."""
    await filled(shop)
    store = shop.stores.pop("t")
    await change(shop)
    shop.stores["t"] = store
    assert texts(shop, "t") == OLD
    parsed = shop.pool.n_parsed
    assert await settle(shop.state, store) == Settled(n_owed=2, n_leaving=2)
    await shop.pull()
    assert shop.pool.n_parsed == parsed
    left = {key: text for key, text in texts(shop, "s").items() if key != "new.md"}
    assert (
        texts(shop, "t") == left == {key: OLD[key] for key in ("same.md", "restored.md")} | {"changed.md": "new text"}
    )
    assert (await shop.doc("vanished.md")).presence is Presence.DELETED
    assert (await shop.doc("erased.md")).presence is Presence.ERASED
    assert (await shop.doc("new.md")).due_in == ("s",)
    assert await settle(shop.state, store) == Settled()
    assert (await shop.pull()).reports == []


async def test_an_empty_store_in_its_place(shop):
    """No record says any more that it holds what it does not; nothing is owed there, and a deletion owes it nothing."""
    await filled(shop)
    store = shop.stores.pop("t")
    await change(shop)
    shop.stores["t"] = store
    store.drop()
    assert await settle(shop.state, store) == Settled(n_lacking=3)
    docs = [await shop.doc(key) for key in (*KEYS, "new.md")]
    assert {slug for doc in docs for slug in (*doc.links, *doc.due_in)} == {"s"}
    assert (await shop.pull()).reports == []
    report = await shop.work_on("same.md", stores=("t",), named=True)
    assert report.outcomes == {"same.md": Outcome.SUCCEEDED}
    assert texts(shop, "t") == {"same.md": OLD["same.md"]}


async def test_an_older_index_in_its_place(shop):
    """What another index holds is made true as well, also of documents no record speaks of there any more."""
    await filled(shop)
    older = shop.folder / "older.duckdb"
    shutil.copy(shop.folder / "t.duckdb", older)
    await change(shop)
    assert texts(shop, "t") == texts(shop, "s") != OLD
    older.rename(shop.folder / "t.duckdb")
    assert texts(shop, "t") == OLD
    assert await settle(shop.state, shop.stores["t"]) == Settled(n_owed=1, n_leaving=2, n_lacking=1)
    await shop.pull()
    assert texts(shop, "t") == {key: text for key, text in texts(shop, "s").items() if key != "new.md"}


async def test_what_is_owed_stays_owed(shop):
    """A document that was to be replaced, or had failed, in a store that lacks it now is built there by itself."""
    await filled(shop)
    store = shop.stores["t"]
    shop.put("changed.md", "new text")
    await shop.discover()
    store.drop()
    assert await settle(shop.state, store) == Settled(n_owed=1, n_lacking=len(KEYS) - 1)
    await shop.pull()
    assert texts(shop, "t") == {"changed.md": "new text"}


async def test_what_had_failed_there_is_tried_again(shop):
    """A failure counts no more while the store is away, and is tried again as soon as it is back."""
    await filled(shop)
    shop.put("changed.md", "new text")
    await shop.discover()
    store = shop.stores["t"]
    shop.stores["t"] = Unavailable("t", shop.folder / "t.duckdb", STAMP)
    await shop.pull()
    del shop.stores["t"]
    await shop.work_on("changed.md")
    doc = await shop.doc("changed.md")
    assert (doc.build.status, doc.links["t"].state) == (Status.COMPLETED, LinkState.FAILED)
    shop.stores["t"] = store
    assert await settle(shop.state, store) == Settled(n_owed=1)
    assert (await shop.pull()).of("changed.md").result.status is Outcome.SUCCEEDED
    assert texts(shop, "t") == texts(shop, "s")


async def test_who_is_worked_on_is_left(shop):
    """A document in a worker's hands is counted and looked at the next time; one that is well there is no reason to."""
    await filled(shop)
    store = shop.stores.pop("t")
    await change(shop)
    shop.stores["t"] = store
    held = {}
    for key in ("changed.md", "same.md"):
        doc = await shop.doc(key)
        [held[key]] = await shop.state.set_many([(transitions.claimed(doc, "w", "r", utc_now(), extract=False), doc)])
    assert await settle(shop.state, store) == Settled(n_owed=1, n_leaving=2, n_busy=1)
    changed = held["changed.md"]
    await shop.state.set_many([(transitions.released(changed, utc_now()), changed)])
    assert await settle(shop.state, store) == Settled(n_owed=1)


async def test_a_run_that_comes_first(shop):
    """A document that is worked on for another reason is brought up to date in each store that holds it, too."""
    await filled(shop)
    store = shop.stores.pop("t")
    await change(shop)
    shop.stores["t"] = store
    await shop.work_on("changed.md", force=True)
    assert texts(shop, "t")["changed.md"] == "new text"
