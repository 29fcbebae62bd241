"""What the page says of a document of which nothing is left but its record."""

from datetime import UTC, datetime

import pytest

from ingest_assets.api.document_shapes import document_shape
from ingest_assets.page.rendering import html
from ingest_assets.upkeep.staleness import Configured
from resources.document_state import removals
from resources.document_state.transitions import discovered

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NAMES = {"default": "Default"}


def standing_of(doc) -> str:
    """The part of a document's page that says how it stands."""
    shape = document_shape(doc, Configured({}, {"default": {}}), NAMES)
    values = {"doc": shape, "extraction_run": "", "history": [], "has_other_chunks": False}
    values |= {"store_names": NAMES, "dagster_url": ""}
    return str(html("document_standing.html", values))


@pytest.mark.parametrize(
    ("leave", "badge", "why"),
    [
        (removals.vanished, "Gone", "Its source no longer has it."),
        (
            removals.deletion_requested,
            "Deleted",
            "Somebody had it deleted; <code>ingest restore</code> brings it back.",
        ),
    ],
)
def test_what_is_gone_is_not_pending(leave, badge, why):
    """Its record says PENDING, since it would be read if it came back; to people it is gone, and why."""
    doc = discovered("d", "default", "docs", "docs:d.md", "v", 1, ("default",), NOW)
    assert "Pending" in standing_of(doc)
    page = standing_of(removals.removed(leave(doc, NOW), ["default"], NOW))
    assert badge in page
    assert why in page
    assert "Pending" not in page
