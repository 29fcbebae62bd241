"""A store begins anew: the records forget it before its data goes."""

from ingest_assets.upkeep.dropping import Dropped, drop_store
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.ingest_jobs import Outcome
from resources.document_state.model import Status
from tests.engine.faulty_parts import Unavailable
from tests.engine.workshop import STAMP


def no_progress(_: int) -> None:
    """Nobody looks."""


async def filled(shop):
    """Three documents in two stores."""
    shop.stores["t"] = shop.duckdb("t")
    for i in range(3):
        shop.put(f"{i}.md", f"text {i}")
    await shop.discover()
    await shop.pull()


async def test_records_forget_what_is_dropped(shop):
    """The store is empty, the other is as it was, nothing is due, and what is asked for is built from the artifacts."""
    await filled(shop)
    before = await shop.doc("0.md")
    assert await drop_store(shop.state, "s", shop.stores["s"].drop, no_progress) == Dropped(3, 0)
    assert (shop.held("s"), len(shop.held("t"))) == ({}, 3)
    doc = await shop.doc("0.md")
    assert (doc.due_in, doc.build.status, doc.links) == (("t",), Status.COMPLETED, {"t": before.links["t"]})
    assert (await shop.pull()).reports == []
    parsed = shop.pool.n_parsed
    assert (await shop.work_on("0.md", stores=("s",), named=True)).outcomes == {"0.md": Outcome.SUCCEEDED}
    assert (shop.pool.n_parsed, len(shop.held("s"))) == (parsed, 1)


async def test_dropping_again_does_nothing(shop):
    """A second drop finds no record that speaks of the store."""
    await filled(shop)
    await drop_store(shop.state, "s", shop.stores["s"].drop, no_progress)
    assert await drop_store(shop.state, "s", shop.stores["s"].drop, no_progress) == Dropped(0, 0)


async def test_data_stays_while_somebody_works(shop):
    """A document in a worker's hands may be written any moment: the data is left until it is free."""
    await filled(shop)
    doc = await shop.doc("1.md")
    held = transitions.claimed(doc, "w", "run", utc_now(), extract=False)
    [held] = await shop.state.set_many([(held, doc)])
    assert await drop_store(shop.state, "s", shop.stores["s"].drop, no_progress) == Dropped(2, 1)
    assert len(shop.held("s")) == 3
    await shop.state.set_many([(transitions.released(held, utc_now()), held)])
    assert await drop_store(shop.state, "s", shop.stores["s"].drop, no_progress) == Dropped(1, 0)
    assert shop.held("s") == {}


async def test_what_had_failed_there_comes_back_by_itself(shop):
    """A build that was owed is owed to the empty store, as it was to the full one."""
    shop.stores["s"] = Unavailable("s", shop.folder / "s.duckdb", STAMP)
    shop.put("a.md", "text")
    await shop.discover()
    await shop.pull()
    shop.stores["s"] = shop.duckdb("s")
    assert await drop_store(shop.state, "s", shop.stores["s"].drop, no_progress) == Dropped(1, 0)
    assert (await shop.pull()).outcomes == {"a.md": Outcome.SUCCEEDED}
