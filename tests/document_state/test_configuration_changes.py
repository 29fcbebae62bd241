"""What a record says when the configuration is another, or a store of it is dropped, emptied or no longer there."""

from resources.document_state import store_transitions, transitions
from resources.document_state.model import Lifecycle, LinkState, Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import CLOCK_DOUBT, due_at, is_open
from tests.document_state.documents import (
    LATER,
    build_failed,
    built,
    claimed,
    complete,
    content_changed,
    extracted,
    failed_link,
    ingested,
    made,
    new,
)


class TestConfiguration:
    """What is stale by configuration is marked, is nobody's work, and is made anew on request."""

    OTHER, SAME = {"s": False, "t": False}, {"s": True, "t": True}

    def outdated(self, doc=None):
        """Complete, and marked stale by configuration everywhere."""
        return transitions.configuration_compared(doc or complete(due_in=("s", "t")), self.OTHER, LATER)

    def test_marked_is_stale_and_not_due(self):
        """The lifecycle says Stale, the build stays complete, and nothing is owed."""
        doc = self.outdated()
        assert (doc.lifecycle, doc.build.status) == (Lifecycle.STALE, Status.COMPLETED)
        assert (due_at(doc), is_open(doc)) == (None, False)
        transitions.check_transition(complete(due_in=("s", "t")), doc)

    def test_marking_again_changes_nothing(self):
        """A second pass gives the record itself."""
        doc = self.outdated()
        assert transitions.configuration_compared(doc, self.OTHER, LATER) is doc
        doc = complete()
        assert transitions.configuration_compared(doc, self.SAME, LATER) is doc

    def test_configuration_comes_back(self):
        """What was marked is Ingested again, with its parts and times as they were."""
        before = complete(due_in=("s", "t"))
        assert transitions.configuration_compared(self.outdated(before), self.SAME, LATER).links == before.links

    def test_stale_by_content_stays_owed(self):
        """Neither marking nor unmarking touches what is stale by content, failed, or of an unknown store."""
        changed, failed = content_changed(complete()), build_failed(Reason.STORE_UNAVAILABLE)
        for doc in (changed, failed, self.outdated(complete(due_in=("u",)))):
            for is_current in (self.OTHER, self.SAME):
                assert transitions.configuration_compared(doc, is_current, LATER) is doc

    def test_new_content_is_owed_whatever_was_marked(self):
        """Other content of a document that is stale by configuration is taken up by itself."""
        doc = content_changed(self.outdated(), now=LATER)
        assert due_at(doc) == LATER - CLOCK_DOUBT
        again = transitions.released(extracted(claimed(doc), "h2"), LATER)
        assert again.build.status is Status.PENDING

    def test_touched_content_is_not_owed(self):
        """A source that says "changed" of the same content spends nothing on what only waits for somebody to ask."""
        doc = content_changed(self.outdated(), now=LATER)
        again = transitions.released(transitions.extracted_as_before(claimed(doc), LATER, "v2"), LATER)
        assert again.build.status is Status.COMPLETED
        assert again.links == self.outdated().links

    def test_what_was_asked_for_survives_the_worker(self):
        """A link claimed to be made anew is owed from then on: given back, it is due without being asked for again."""
        doc = self.outdated()
        asked = transitions.claimed(doc, "w", "run", LATER, extract=False, renew=("s",))
        transitions.check_transition(doc, asked)
        back = transitions.released(asked, LATER)
        assert (back.build.status, due_at(back)) == (Status.PENDING, LATER - CLOCK_DOUBT)
        assert back.links["t"] == doc.links["t"]

    def test_extraction_for_one_store_leaves_the_other(self):
        """Extracted anew from the same bytes for one store, the other's link is left, as stale by configuration."""
        for before in (complete(due_in=("s", "t")), self.outdated()):
            doc = claimed(before)
            parts = before.extraction.parts
            again = self.extracted_for(doc, parts, ("s",))
            assert (again.links["s"].state, again.links["s"].on_request) == (LinkState.STALE, False)
            assert (again.links["t"].state, again.links["t"].on_request) == (LinkState.STALE, True)
            assert again.links["t"].parts == before.links["t"].parts
            done = built(again, ingested(again, "s"))
            assert (done.build.status, done.lifecycle) == (Status.COMPLETED, Lifecycle.STALE)

    def test_extraction_of_other_bytes_is_owed_to_every_store(self):
        """If the source's bytes are others, a store that the run may not build is owed them."""
        doc = claimed(complete(due_in=("s", "t")))
        again = self.extracted_for(doc, {"content": "other"}, ("s",))
        done = built(again, ingested(again, "s"))
        assert done.build.status is Status.PENDING

    def test_failed_store_that_may_not_be_built_stays_failed(self):
        """It keeps its reason, and forgets which content it holds: nobody knows."""
        failed = built(extracted(claimed(new(due_in=("s", "t")))), failed_link(new(), "t"))
        again = self.extracted_for(claimed(failed), failed.extraction.parts, ("s",))
        link = again.links["t"]
        assert (link.state, link.reason, link.parts["content"]) == (LinkState.FAILED, Reason.STORE_UNAVAILABLE, "")

    @staticmethod
    def extracted_for(doc, parts, stores):
        """Extraction made something else of it, for some stores."""
        return transitions.extracted(
            doc, made("h9"), LATER, parts=parts, content_version="v", n_corrections=0, building=stores
        )

    def test_dropped_store_is_owed_only_what_it_was_owed(self):
        """A document that was complete is not due there any more; one that was owed there, or had failed, is again."""
        assert (d := store_transitions.store_dropped(complete(due_in=("s", "t")), "s", LATER)).due_in == ("t",)
        assert (d.build.status, list(d.links)) == (Status.COMPLETED, ["t"])
        for before in (build_failed(Reason.STORE_MISMATCH), content_changed(complete()), complete(due_in=("t",))):
            doc = store_transitions.store_dropped(before, "s", LATER)
            transitions.check_transition(before, doc)
            assert "s" not in doc.links
        assert due_at(store_transitions.store_dropped(build_failed(Reason.STORE_MISMATCH), "s", LATER)) is not None

    def test_an_emptied_store_is_owed_what_it_held(self):
        """Whatever it was (current, stale on request, failed), it is due again at once, and holds nothing current."""
        stale = transitions.configuration_compared(complete(), {"s": False}, LATER)
        for before in (complete(), stale, build_failed(Reason.STORE_MISMATCH)):
            doc = store_transitions.store_emptied(before, "s", LATER)
            transitions.check_transition(before, doc)
            assert (doc.links["s"].state, doc.links["s"].on_request) == (LinkState.STALE, False)
            assert (doc.build.status, doc.build.attempts, due_at(doc) is not None) == (Status.PENDING, 0, True)
        assert store_transitions.store_emptied(complete(), "elsewhere", LATER) == complete()

    def test_a_store_that_is_configured_no_more_counts_no_more(self):
        """Its link stays and neither fails nor completes the document; a failure there is looked at once more."""
        before = complete(due_in=("s", "t"))
        doc = store_transitions.stores_unconfigured(before, {"s"}, LATER)
        assert (doc.due_in, list(doc.links), doc.build.status) == (("s",), ["s", "t"], Status.COMPLETED)
        failed = build_failed(Reason.STORE_MISMATCH)
        doc = store_transitions.stores_unconfigured(failed, {"other"}, LATER)
        transitions.check_transition(failed, doc)
        assert (doc.build.status, due_at(doc) is not None) == (Status.PENDING, True)
        assert store_transitions.stores_unconfigured(doc, {"other"}, LATER) is doc
        assert store_transitions.stores_unconfigured(before, {"s", "t"}, LATER) is before
