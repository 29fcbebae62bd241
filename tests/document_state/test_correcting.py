"""What correcting chunks makes of a document's record."""

import pytest

from resources.document_state import transitions
from resources.document_state.links import owes_content
from resources.document_state.model import Lifecycle, LinkState, Status
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Mode, action_for, is_taken_up
from resources.document_state.transitions import CLOCK_DOUBT, check_transition, due_at, is_open
from tests.document_state.documents import (
    LATER,
    NOW,
    build_failed,
    built,
    claimed,
    complete,
    content_changed,
    corrected,
    deleted,
    extracted,
    ingested,
)

BOTH = ("s", "t")


def rebuilt(doc, store):
    """Somebody asked for it in one store, and it was built there."""
    doc = transitions.claimed(doc, "w", "run", LATER, extract=False, renew=(store,))
    return built(doc, ingested(doc, store))


def test_stale_everywhere_and_nobodys_work():
    """All links are Stale, the build stays complete, and no mode takes it up."""
    before = complete(due_in=BOTH)
    doc = corrected(before)
    assert {link.state for link in doc.links.values()} == {LinkState.STALE}
    assert (doc.lifecycle, doc.build.status, doc.claim) == (Lifecycle.STALE, Status.COMPLETED, None)
    assert (due_at(doc), is_open(doc), action_for(doc)) == (None, False, None)
    assert not any(is_taken_up(doc, mode, LATER) for mode in Mode)
    assert (doc.artifact, doc.artifact_hash) == ("artifact of h1 corrected", "h1 corrected")
    check_transition(claimed(before, extract=False), doc)


def test_one_store_rebuilt_leaves_the_other():
    """A store that is rebuilt holds the correction; the other is stale still, and owed nothing."""
    doc = rebuilt(corrected(complete(due_in=BOTH)), "s")
    assert [doc.links[slug].state for slug in BOTH] == [LinkState.INGESTED, LinkState.STALE]
    assert doc.build.status is Status.COMPLETED


def test_taken_back():
    """A store that holds the original is Ingested again as it was; one that holds the correction is stale now."""
    before = complete(due_in=BOTH)
    doc = corrected(rebuilt(corrected(before), "s"), "h1", 0)
    assert doc.links["t"] == before.links["t"]
    assert (doc.links["s"].state, doc.links["s"].on_request) == (LinkState.STALE, True)
    assert doc.corrections.n == 0


def test_taken_back_under_another_configuration():
    """What is stale by configuration as well stays so."""
    doc = corrected(corrected(complete()), "h1", 0, at_configuration=False)
    assert doc.links["s"].state is LinkState.STALE


def test_no_pass_over_the_configuration_unmarks_it():
    """`ingest plan --apply` finds nothing to do, whatever the configuration is."""
    doc = corrected(complete())
    for is_current in (True, False):
        assert transitions.configuration_compared(doc, {"s": is_current}, LATER) is doc


def test_what_was_owed_is_owed():
    """A store that failed, or was asked for by somebody whose worker died, is written without being asked for again."""
    failed = corrected(build_failed(Reason.STORE_UNAVAILABLE))
    assert (failed.build.status, failed.links["s"].state) == (Status.FAILED, LinkState.FAILED)
    asked = transitions.claimed(corrected(complete()), "w", "run", NOW, extract=False, renew=("s",))
    released = corrected(transitions.released(asked, NOW), "h1", 0)
    assert released.build.status is Status.PENDING
    assert owes_content(released, released.links["s"])


def test_half_written_is_not_taken_for_the_original():
    """A write of the correction failed half way: taking the correction back does not make the store current."""
    doc = transitions.claimed(corrected(complete()), "w", "run", NOW, extract=False, renew=("s",))
    link = build_failed(Reason.STORE_UNAVAILABLE).links["s"]
    doc = transitions.retry_requested(corrected(built(doc, link), "h1", 0), LATER)
    assert doc.links["s"].parts.get("content") != doc.artifact_hash


def test_touched_content():
    """The source says "changed" and the content is the same: the correction spends nothing by itself."""
    doc = content_changed(corrected(complete()), now=LATER)
    assert due_at(doc) == LATER - CLOCK_DOUBT
    doc = transitions.released(transitions.extracted_as_before(claimed(doc), LATER, "v2"), LATER)
    assert (doc.build.status, doc.lifecycle) == (Status.COMPLETED, Lifecycle.STALE)
    doc = transitions.released(extracted(claimed(content_changed(doc)), "h1 corrected"), LATER)
    assert (doc.build.status, doc.lifecycle) == (Status.COMPLETED, Lifecycle.STALE)


@pytest.mark.parametrize("building", [None, ("s",)])
def test_new_content_is_owed(building):
    """Content that really changed goes into every store by itself, corrected or not."""
    doc = extracted(claimed(content_changed(corrected(complete(due_in=BOTH)))), "h2", building=building)
    assert transitions.released(doc, LATER).build.status is Status.PENDING
    assert all(owes_content(doc, link) for link in doc.links.values())
    assert doc.corrections.n == 1


def test_a_removed_document_has_none():
    """Corrections go with the document."""
    assert deleted(corrected(complete())).corrections is None
