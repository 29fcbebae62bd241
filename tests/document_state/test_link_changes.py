"""The log line of a link whose state changed."""

import logging

import msgspec
import pytest

from resources.document_state import links, removals, transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.link_changes import link_changes
from resources.document_state.model import LinkState
from resources.records.memory_backend import MemoryBackend
from tests.document_state.documents import NOW, SECOND, claimed, complete, extracted, failed_link, ingested, new

LOGGER = "resources.document_state.link_changes"


@pytest.fixture
def state() -> RecordDocumentStateStore:
    """An empty state."""
    return RecordDocumentStateStore(MemoryBackend())


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, str]]:
    """The fields of each line, without those that depend on the document alone."""
    lines = [record.__dict__ for record in caplog.records if record.__dict__.get("event") == "store_link_changed"]
    return [{name: line[name] for name in ("doc_id", "store_id", "from", "to")} for line in lines]


async def test_each_change_of_a_link_is_told_once(state, caplog) -> None:
    """From none to Ingested, to Stale, to Failed, to none: a line each, with who, where, from, to and when."""
    caplog.set_level(logging.INFO, LOGGER)
    doc = extracted(claimed(new()))
    [doc] = await state.set_many([(doc, None)])
    steps = [
        lambda doc: msgspec.structs.replace(doc, links={"s": ingested(doc)}, updated_at=NOW + SECOND),
        lambda doc: msgspec.structs.replace(doc, links={"s": links.mark_stale(doc.links["s"])}),
        lambda doc: msgspec.structs.replace(doc, links={"s": failed_link(doc)}),
        lambda doc: msgspec.structs.replace(doc, links={}),
    ]
    for step in steps:
        [doc] = await state.set_many([(step(doc), doc)])
    ways = [("none", "Ingested"), ("Ingested", "Stale"), ("Stale", "Failed"), ("Failed", "none")]
    assert told(caplog) == [{"doc_id": "a", "store_id": "s", "from": a, "to": b} for a, b in ways]
    first = caplog.records[0]
    assert first.getMessage() == (
        f"store_link_changed doc_id=a store_id=s from=none to=Ingested at={(NOW + SECOND).isoformat()}"
    )
    assert (first.__dict__["link_id"], first.__dict__["at"]) == ("a:s", (NOW + SECOND).isoformat())


async def test_a_refused_write_is_not_told(state, caplog) -> None:
    """Whoever loses the race for a record has changed no link, and no line says so."""
    caplog.set_level(logging.INFO, LOGGER)
    doc = complete()
    [stored] = await state.set_many([(doc, None)])
    [winner] = await state.set_many([(removals.vanished(stored, NOW), stored)])
    caplog.clear()
    stale = msgspec.structs.replace(stored, links={"s": links.mark_stale(stored.links["s"])})
    assert await state.set_many([(stale, stored)]) == [None]
    assert (winner is not None, told(caplog)) == (True, [])


async def test_a_link_that_keeps_its_state_is_not_told(state, caplog) -> None:
    """A document that is built again, or claimed, changes no link's state."""
    doc = complete()
    [stored] = await state.set_many([(doc, None)])
    caplog.set_level(logging.INFO, LOGGER)
    again = transitions.claimed(stored, "w", "run 2", NOW, extract=False)
    await state.set_many([(again, stored)])
    assert told(caplog) == []


def test_changes_are_of_states() -> None:
    """A document nobody knew brings its links along; another time or run in a link is no change."""
    doc = complete()
    assert [(change.before, change.after) for change in link_changes(None, doc)] == [(None, LinkState.INGESTED)]
    later = msgspec.structs.replace(doc.links["s"], last_run_id="another")
    assert link_changes(doc, msgspec.structs.replace(doc, links={"s": later})) == []
