"""What other content, and another artifact, do to a record: in its stores, to its work, and to what is due."""

from datetime import timedelta

import msgspec

from resources.document_state import links, transitions
from resources.document_state.model import LinkState, PhaseState, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import CLOCK_DOUBT, due_at, is_open
from tests.document_state.documents import (
    LATER,
    MAY_HEAL,
    NOW,
    SECOND,
    claimed,
    complete,
    content_changed,
    deleted,
    extracted,
    extraction_failed,
    failed_link,
    new,
    skipped,
    vanished,
)


class TestContent:
    def test_change_makes_links_stale(self):
        """Other content keeps the links and the artifact, as stale, until it is built."""
        doc = content_changed(complete(due_in=("s", "t")))
        assert {link.state for link in doc.links.values()} == {LinkState.STALE}
        assert doc.artifact
        assert doc.content_version == "v2"

    def test_other_artifact_makes_links_stale(self):
        """What stores hold is stale once extraction makes something else of the document."""
        again = extracted(claimed(complete()), "h2")
        assert again.links["s"].state is LinkState.STALE
        assert extracted(claimed(complete()), "h1").links["s"].state is LinkState.INGESTED

    def test_link_of_older_content_is_not_current(self):
        """Ingested counts only at the content extracted last."""
        doc = complete()
        assert links.is_current(doc, doc.links["s"])
        other = msgspec.structs.replace(doc, artifact_hash="h2")
        assert not links.is_current(other, doc.links["s"])

    def test_failed_store_keeps_what_it_held(self):
        """A failed write does not forget what the store held before."""
        doc = complete()
        link = failed_link(doc)
        assert link.state is LinkState.FAILED
        assert (link.chunkset_hash, link.parts) == (doc.links["s"].chunkset_hash, doc.links["s"].parts)

    def test_stale_link_has_no_error(self):
        """An old error does not stay with a link that is only stale."""
        link = links.mark_stale(failed_link(new()))
        assert (link.state, link.reason, link.error_message) == (LinkState.STALE, None, "")

    def test_extracted_again_forgets_the_failure(self):
        """Success leaves no reason, error or attempt of earlier failures."""
        doc = extracted(claimed(extraction_failed(new(), MAY_HEAL)))
        assert doc.extraction == PhaseState(Status.COMPLETED, NOW, parts=doc.extraction.parts, run_id="run of w1")

    def test_work_is_due_whatever_the_clock_says(self):
        """What waits for nothing is due for a watcher whose clock is an hour behind, in the order it was written."""
        hour = timedelta(hours=1)
        early, late = due_at(new(now=NOW)), due_at(new(now=NOW + SECOND))
        assert early < late < NOW - hour
        assert due_at(vanished(complete())) < NOW - hour

    def test_open_is_what_something_is_still_to_become_of(self):
        """Owed, held, failed and vanished documents are open; complete, skipped and removed ones are not."""
        held_again = claimed(complete())
        for doc in (
            new(),
            claimed(new()),
            extraction_failed(new(), Reason.MALFORMED),
            vanished(complete()),
            held_again,
        ):
            assert is_open(doc)
        for doc in (complete(), skipped(new()), deleted(complete())):
            assert not is_open(doc)

    def test_removed_document_keeps_its_name(self):
        """A removed document remembers who it was and its token, and holds neither link nor artifact nor claim."""
        before = complete()
        doc = deleted(before)
        assert doc.presence is Presence.DELETED
        assert (doc.links, doc.artifact, doc.artifact_hash, doc.claim, doc.content_version) == ({}, "", "", None, "")
        assert (doc.title, doc.media_type, doc.size, doc.warnings, doc.n_chunks, doc.due_in) == ("", "", 0, (), 0, ())
        assert (doc.source_uri, doc.org_id, doc.created_at) == (before.source_uri, before.org_id, before.created_at)
        assert doc.token == before.token + 1

    def test_comes_back_with_todays_stores(self):
        """A document that is there again, or changed, is due in the stores of today."""
        doc = transitions.content_changed(deleted(complete()), "v9", 5, ("t",), LATER)
        assert (doc.presence, doc.due_in, doc.content_version, doc.size) == (Presence.PRESENT, ("t",), "v9", 5)
        assert due_at(doc) == LATER - CLOCK_DOUBT
