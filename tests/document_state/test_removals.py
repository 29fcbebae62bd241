"""The changes on a document's way out, and the ways back."""

from datetime import timedelta

import msgspec

from resources.document_state import removals, store_transitions
from resources.document_state.model import Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import CLOCK_DOUBT, due_at, is_open
from tests.document_state.documents import LATER, NOW, POLICY, claimed, complete, content_changed

GRACE = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)


class TestDeletion:
    """What a person had deleted stays away until a person restores it; what a store still holds stays told."""

    def test_deleted_by_a_person(self):
        """It is due at once for its removal, and after it for nothing, whatever anybody asks."""
        doc = removals.deletion_requested(complete(), NOW)
        assert (doc.presence, due_at(doc), is_open(doc)) == (Presence.DELETING, NOW - CLOCK_DOUBT, True)
        doc = removals.removed(claimed(doc, extract=False), ("s",), NOW)
        assert (doc.presence, due_at(doc), is_open(doc), doc.links) == (Presence.ERASED, None, False, {})

    def test_store_that_is_not_configured(self):
        """A store nobody could look into keeps its link, and dropping it or deleting again takes that away."""
        doc = removals.deletion_requested(complete(due_in=("s", "old")), NOW)
        doc = removals.removed(claimed(doc, extract=False), ("s",), NOW)
        assert list(doc.links) == ["old"]
        assert store_transitions.store_dropped(doc, "old", LATER).links == {}
        again = removals.deletion_requested(doc, LATER)
        assert removals.removed(claimed(again, extract=False), ("s", "old"), LATER).links == {}

    def test_restored(self):
        """It is due like a new one, in today's stores, and above its old fence."""
        gone = removals.removed(claimed(removals.deletion_requested(complete(), NOW), extract=False), ("s",), NOW)
        doc = removals.restored(gone, ("t",), LATER)
        assert (doc.presence, doc.due_in, doc.token, due_at(doc)) == (
            Presence.PRESENT,
            ("t",),
            gone.token,
            LATER - CLOCK_DOUBT,
        )

    def test_failed_removal_is_told_store_by_store(self):
        """A store it has left is forgotten; one that would not let go is named with its reason, and tried again."""
        doc = claimed(removals.vanished(complete(due_in=("s", "t")), NOW), extract=False)
        doc = removals.removal_failed(doc, ["s"], {"t": (Reason.STORE_UNAVAILABLE, "no answer")}, NOW, POLICY)
        assert list(doc.links) == ["t"]
        assert (doc.links["t"].reason, doc.links["t"].error_message) == (Reason.STORE_UNAVAILABLE, "no answer")
        assert (doc.build.status, doc.build.next_attempt_at) == (Status.FAILED, NOW + POLICY.first_pause)

    def test_missing_costs_nothing(self):
        """In its grace period a document is neither due nor touched, shows as before, and comes back as it was."""
        before = complete()
        doc = removals.unlisted(before, GRACE, NOW)
        assert (doc.links, doc.lifecycle, due_at(doc)) == (before.links, before.lifecycle, None)
        assert msgspec.structs.replace(removals.reappeared(doc, NOW), history=before.history) == before
        changed = content_changed(doc)
        assert (changed.presence, changed.missing_since) == (Presence.PRESENT, None)
        assert changed.links == content_changed(before).links

    def test_missing_for_its_grace_period(self):
        """Without one it vanishes at once; else it stays as it is until the end, counted anew where a clock lied."""
        assert removals.unlisted(complete(), timedelta(), NOW) == removals.vanished(complete(), NOW)
        doc = removals.unlisted(complete(), GRACE, NOW)
        assert (doc.presence, doc.missing_since) == (Presence.MISSING, NOW)
        assert removals.unlisted(doc, GRACE, NOW + GRACE - MICROSECOND) is doc
        assert removals.unlisted(doc, GRACE, NOW + GRACE).presence is Presence.VANISHED
        earlier = removals.unlisted(doc, GRACE, NOW - MICROSECOND)
        assert (earlier.presence, earlier.missing_since) == (Presence.MISSING, NOW - MICROSECOND)
