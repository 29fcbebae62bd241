"""Every change a document's record can make, and what follows from it."""

from datetime import timedelta
from itertools import product

import msgspec
import pytest

from resources.document_state import links, removals, store_transitions, transitions
from resources.document_state.model import Lifecycle, LinkState, Phase, PhaseState, Presence, Status
from resources.document_state.reasons import Reason, Remedy
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.transitions import (
    CLOCK_DOUBT,
    ERROR_CHARACTERS,
    IllegalTransitionError,
    due_at,
    is_open,
)
from tests.document_state.documents import (
    NOW,
    POLICY,
    SECOND,
    build_failed,
    built,
    claimed,
    complete,
    content_changed,
    deleted,
    extracted,
    extraction_failed,
    failed_link,
    ingested,
    made,
    new,
    quarantined,
    skipped,
    vanished,
)

# Written down here once more, so that a change of the table is noticed.
ALLOWED = {
    (Status.PENDING, Status.IN_PROGRESS),
    (Status.PENDING, Status.SKIPPED),
    (Status.IN_PROGRESS, Status.PENDING),
    (Status.IN_PROGRESS, Status.COMPLETED),
    (Status.IN_PROGRESS, Status.FAILED),
    (Status.IN_PROGRESS, Status.SKIPPED),
    (Status.COMPLETED, Status.PENDING),
    (Status.COMPLETED, Status.IN_PROGRESS),
    (Status.FAILED, Status.PENDING),
    (Status.FAILED, Status.IN_PROGRESS),
    (Status.SKIPPED, Status.PENDING),
    (Status.SKIPPED, Status.IN_PROGRESS),
}
MAY_HEAL = Reason.SOURCE_UNAVAILABLE
LATER = NOW + timedelta(hours=1)


def in_phase(phase, status):
    """A record whose phase has a status, and whose other phase is pending."""
    return msgspec.structs.replace(new(), **{phase.value: PhaseState(status, NOW)})


class TestTable:
    @pytest.mark.parametrize("phase", Phase)
    @pytest.mark.parametrize(("old", "new"), product(Status, Status))
    def test_each_pair(self, phase, old, new):
        """Staying is allowed, each pair of the table is allowed, every other is refused by name."""
        before, after = in_phase(phase, old), in_phase(phase, new)
        if old is new or (old, new) in ALLOWED:
            transitions.check_transition(before, after)
        else:
            with pytest.raises(IllegalTransitionError, match=f"'a'.*{phase} cannot go from {old} to {new}") as raised:
                transitions.check_transition(before, after)
            assert raised.value.document_id == "a"
            for allowed in transitions.ALLOWED[old]:
                assert allowed in str(raised.value)

    @pytest.mark.parametrize("status", Status)
    def test_created_in_any_state(self, status):
        """A record that did not exist may begin anywhere."""
        transitions.check_transition(None, in_phase(Phase.EXTRACTION, status))


LINK_KINDS = ("none", "ingested", "old", "stale", "outdated", "failed")


def link_of(doc, store, kind):
    """A store's link of a kind, or none."""
    match kind:
        case "ingested":
            return [ingested(doc, store)]
        case "old":
            return [msgspec.structs.replace(ingested(doc, store), parts={"content": "older"})]
        case "stale":
            return [links.mark_stale(ingested(doc, store))]
        case "outdated":
            return [links.mark_outdated(ingested(doc, store))]
        case "failed":
            return [failed_link(doc, store)]
        case _:
            return []


class TestBuildIsDerived:
    @pytest.mark.parametrize(("s", "t", "other"), product(LINK_KINDS, LINK_KINDS, LINK_KINDS))
    def test_from_all_links(self, s, t, other):
        """COMPLETED: no due store is owed content. FAILED: one failed. Else PENDING. Other stores do not count."""
        doc = extracted(claimed(new(due_in=("s", "t"))))
        doc = built(doc, *link_of(doc, "s", s), *link_of(doc, "t", t), *link_of(doc, "other", other))
        expected = Status.PENDING
        if "failed" in (s, t):
            expected = Status.FAILED
        elif {s, t} <= {"ingested", "outdated"}:
            expected = Status.COMPLETED
        assert doc.build.status is expected
        assert (doc.build.reason is not None) is (expected is Status.FAILED)
        assert (due_at(doc) is None) is (expected is Status.COMPLETED)

    def test_in_progress_while_claimed(self):
        """Between extraction and publishing the build is in progress, whatever the links say."""
        doc = extracted(claimed(complete()), "h1")
        assert (doc.extraction.status, doc.build.status) == (Status.COMPLETED, Status.IN_PROGRESS)

    @pytest.mark.parametrize(
        ("doc", "status"),
        [
            (new(), Status.PENDING),
            (claimed(new()), Status.PENDING),
            (extraction_failed(new(), MAY_HEAL), Status.PENDING),
            (skipped(new()), Status.SKIPPED),
            (complete(), Status.COMPLETED),
            (complete(due_in=()), Status.COMPLETED),
        ],
    )
    def test_from_extraction(self, doc, status):
        """Nothing is built before it is extracted, and what is skipped is skipped in both phases."""
        assert doc.build.status is status

    def test_failure_of_a_store_is_told(self):
        """The build of a document carries the reason and the words of the store that failed."""
        doc = build_failed(Reason.STORE_MISMATCH)
        assert (doc.build.reason, doc.build.error) == (Reason.STORE_MISMATCH, "s said no")

    def test_changed_at_moves_with_the_status(self):
        """A build that stays as it is keeps the time since when it is so."""
        doc = build_failed(Reason.STORE_UNAVAILABLE)
        again = built(claimed(doc, extract=False), failed_link(doc), now=LATER)
        assert again.build.changed_at == LATER
        once_more = removals.vanished(again, LATER + SECOND)
        assert once_more.build.changed_at == LATER


class TestLifecycle:
    @pytest.mark.parametrize(("s", "t", "other"), product(LINK_KINDS, LINK_KINDS, LINK_KINDS))
    def test_from_links(self, s, t, other):
        """Any link Failed, else any Stale, else any Ingested, else what extraction says; other stores do not count."""
        doc = extracted(claimed(new(due_in=("s", "t"))))
        doc = built(doc, *link_of(doc, "s", s), *link_of(doc, "t", t), *link_of(doc, "other", other))
        if "failed" in (s, t):
            expected = Lifecycle.FAILED
        elif {"stale", "outdated"} & {s, t}:
            expected = Lifecycle.STALE
        elif {"ingested", "old"} & {s, t}:
            expected = Lifecycle.INGESTED
        else:
            expected = Lifecycle.CHUNKED
        assert doc.lifecycle is expected

    @pytest.mark.parametrize(
        ("doc", "lifecycle"),
        [
            (new(), Lifecycle.UPLOADED),
            (claimed(new()), Lifecycle.PARSED),
            (extracted(claimed(new())), Lifecycle.CHUNKED),
            (extraction_failed(new(), MAY_HEAL), Lifecycle.FAILED),
            (skipped(new()), Lifecycle.SKIPPED),
            (complete(), Lifecycle.INGESTED),
            (content_changed(complete()), Lifecycle.STALE),
            (vanished(complete()), Lifecycle.GONE),
            (deleted(complete()), Lifecycle.GONE),
        ],
    )
    def test_along_the_way(self, doc, lifecycle):
        """Each station of a document has its word."""
        assert doc.lifecycle is lifecycle


class TestRetry:
    def test_pauses_grow_and_end(self):
        """Each failure waits longer than the one before, up to the longest pause; after the last attempt none comes."""
        policy = RetryPolicy(
            max_attempts=6, first_pause=timedelta(seconds=10), factor=3, longest_pause=timedelta(seconds=200)
        )
        pauses = [policy.next_attempt_at(MAY_HEAL, n, NOW) for n in range(1, 7)]
        assert [p and (p - NOW).total_seconds() for p in pauses] == [10, 30, 90, 200, 200, None]

    @pytest.mark.parametrize("reason", Reason)
    def test_only_what_may_heal_comes_back_by_itself(self, reason):
        """A failure that trying cannot heal is not tried again by itself."""
        comes_back = POLICY.next_attempt_at(reason, 1, NOW) is not None
        assert comes_back is (reason.remedy is Remedy.MAY_HEAL)

    def test_many_attempts_do_not_overflow(self):
        """However many attempts are allowed, the pause stays a time."""
        policy = RetryPolicy(max_attempts=10**6)
        assert policy.next_attempt_at(MAY_HEAL, 10_000, NOW) == NOW + policy.longest_pause

    def test_extraction_is_quarantined(self):
        """Failures are counted over claims; after the last allowed one nothing but a person or new content helps."""
        doc = new()
        for attempt in range(1, POLICY.max_attempts + 1):
            doc = extraction_failed(doc, MAY_HEAL)
            assert doc.extraction.attempts == attempt
            assert (due_at(doc) is None) is (attempt == POLICY.max_attempts)

    def test_build_is_quarantined(self):
        """A store that keeps failing is tried as often as the policy says, and not more."""
        doc = build_failed(Reason.STORE_UNAVAILABLE)
        seen = [due_at(doc)]
        for _ in range(POLICY.max_attempts - 1):
            doc = built(claimed(doc, extract=False), failed_link(doc))
            seen.append(due_at(doc))
        assert [due and (due - NOW) / SECOND for due in seen] == [10, 20, None]
        assert doc.build.attempts == POLICY.max_attempts

    def test_giving_back_costs_no_attempt(self):
        """A claim that ends without a verdict changes no count and makes the document due at once."""
        doc = transitions.released(claimed(extraction_failed(new(), MAY_HEAL)), LATER)
        assert (doc.extraction.status, doc.extraction.attempts) == (Status.PENDING, 1)
        assert due_at(doc) == LATER - CLOCK_DOUBT

    def test_an_owed_build_does_not_wait(self):
        """A build that is owed is due at once, whatever pause the failure before it had."""
        failed = build_failed(Reason.STORE_UNAVAILABLE, ("s", "t"))
        assert due_at(failed) == failed.build.next_attempt_at > NOW
        without = store_transitions.store_dropped(failed, "s", NOW)
        assert (without.build.status, due_at(without)) == (Status.PENDING, NOW - CLOCK_DOUBT)

    @pytest.mark.parametrize(("held_token", "token"), [(0, 2), (1, 2), (7, 8)])
    def test_outrunning_a_store(self, held_token, token):
        """A worker keeps its document under a token larger than the store's and its own, and nothing else changes."""
        held = extracted(claimed(new()))
        doc = transitions.outran(held, held_token, LATER)
        claim = msgspec.structs.replace(held.claim, token=token)
        assert doc == msgspec.structs.replace(held, token=token, claim=claim, updated_at=LATER)
        free = transitions.released(doc, LATER)
        assert (free.claim, free.token, claimed(free).claim.token) == (None, token, token + 1)

    def test_new_content_starts_again(self):
        """Other content has all attempts before it."""
        for doc in (quarantined(new()), extraction_failed(new(), Reason.MALFORMED), skipped(new())):
            changed = content_changed(doc, now=LATER)
            assert (changed.extraction.status, changed.extraction.attempts) == (Status.PENDING, 0)
            assert changed.extraction.reason is None
            assert due_at(changed) == LATER - CLOCK_DOUBT
        doc = content_changed(build_failed(Reason.STORE_UNAVAILABLE))
        assert (doc.build.attempts, doc.build.next_attempt_at) == (0, None)

    def test_a_person_starts_again(self):
        """Asked for by a person, a failed or skipped document has all attempts before it, whatever the reason was."""
        for doc in (quarantined(new()), extraction_failed(new(), Reason.PASSWORD_REQUIRED), skipped(new())):
            asked = transitions.retry_requested(doc, LATER)
            assert (asked.extraction.status, asked.extraction.attempts, asked.extraction.reason) == (
                Status.PENDING,
                0,
                None,
            )
            assert due_at(asked) == LATER - CLOCK_DOUBT
            transitions.check_transition(doc, asked)
        doc = build_failed(Reason.STORE_MISMATCH)
        asked = transitions.retry_requested(doc, LATER)
        assert (asked.build.status, asked.build.attempts, due_at(asked)) == (Status.PENDING, 0, LATER - CLOCK_DOUBT)

    def test_asking_for_what_is_complete_changes_nothing(self):
        """A complete document that somebody wants again stays complete."""
        asked = transitions.retry_requested(complete(), LATER)
        assert (asked.extraction.status, asked.build.status, due_at(asked)) == (
            Status.COMPLETED,
            Status.COMPLETED,
            None,
        )

    def test_one_store_that_may_heal_is_enough(self):
        """Of several failed stores one that may heal brings the document back, whichever stands first."""
        doc = extracted(claimed(new(due_in=("s", "t"))))
        mismatch, outage = failed_link(doc, "s", Reason.STORE_MISMATCH), failed_link(doc, "t")
        assert due_at(built(doc, mismatch, outage)) == NOW + 10 * SECOND
        assert due_at(built(doc, outage, mismatch)) == NOW + 10 * SECOND

    def test_building_one_store_leaves_anothers_retry(self):
        """A run that may only build one store does not take the other's next attempt away."""
        doc = extracted(claimed(new(due_in=("s", "t"))))
        failed = built(doc, failed_link(doc, "s"), ingested(doc, "t"))
        again = built(extracted(claimed(failed)), ingested(doc, "t"))
        assert again.build.status is Status.FAILED
        assert due_at(again) == due_at(failed)

    def test_failed_removal_waits_and_never_ends(self):
        """A store that refuses a removal is asked again after growing pauses, without end: what is gone must go."""
        doc = vanished(complete())
        pauses = []
        for _ in range(6):
            doc = removals.removal_failed(claimed(doc, extract=False), (), {}, NOW, POLICY)
            assert doc.presence is Presence.VANISHED
            pauses.append((due_at(doc) - NOW) / SECOND)
        assert pauses == [10, 20, 40, 60, 60, 60]
        assert due_at(vanished(build_failed(Reason.STORE_UNAVAILABLE))) == NOW - CLOCK_DOUBT


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
        doc = removals.missing(before, NOW)
        assert (doc.links, doc.lifecycle, due_at(doc)) == (before.links, before.lifecycle, None)
        assert msgspec.structs.replace(removals.reappeared(doc, NOW), history=before.history) == before
        changed = content_changed(doc)
        assert (changed.presence, changed.missing_since) == (Presence.PRESENT, None)
        assert changed.links == content_changed(before).links


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


class TestClaim:
    def test_token_grows_with_every_claim(self):
        """Each claim has a larger token than any before, over releases, removals and returns."""
        doc = new()
        tokens = []
        for step in (claimed, claimed, claimed):
            doc = step(doc)
            tokens.append(doc.claim.token)
            doc = transitions.released(doc, NOW)
        doc = claimed(content_changed(deleted(doc)))
        tokens.append(doc.claim.token)
        assert tokens == sorted(set(tokens))
        assert doc.token == tokens[-1]

    @pytest.mark.parametrize("extract", [True, False])
    def test_claimed_is_not_due(self, extract):
        """Whatever a worker holds wants no other."""
        for doc in (new(), vanished(complete()), build_failed(Reason.STORE_UNAVAILABLE)):
            assert due_at(claimed(doc, extract=extract)) is None

    def test_claim_names_worker_and_run(self):
        """The record says who holds it and which run changed it last."""
        doc = claimed(new(), worker="w7")
        assert (doc.claim.worker_id, doc.claim.run_id, doc.last_run_id) == ("w7", "run of w7", "run of w7")

    def test_build_claim_leaves_the_extraction(self):
        """A claim for the build alone keeps the completed extraction."""
        doc = claimed(build_failed(Reason.STORE_UNAVAILABLE), extract=False)
        assert (doc.extraction.status, doc.build.status) == (Status.COMPLETED, Status.IN_PROGRESS)

    def test_lost_artifact_begins_the_extraction(self):
        """A document whose artifact is gone is extracted under the claim for its build, and may fail at it."""
        doc = claimed(build_failed(Reason.STORE_UNAVAILABLE), extract=False)
        lost = transitions.artifact_lost(doc, NOW)
        assert (lost.extraction.status, lost.artifact, lost.claim) == (Status.IN_PROGRESS, "", doc.claim)
        transitions.check_transition(doc, lost)
        failed = transitions.extraction_failed(lost, MAY_HEAL, "detail", NOW, POLICY)
        transitions.check_transition(lost, failed)


def test_errors_are_cut():
    """However long an error is, the record stays small."""
    long = "x" * 10_000
    doc = transitions.extraction_failed(claimed(new()), MAY_HEAL, long, NOW, POLICY)
    assert len(doc.extraction.error) == ERROR_CHARACTERS
    assert len(transitions.extraction_skipped(claimed(new()), MAY_HEAL, long, NOW).extraction.error) == 300
    assert len(links.mark_failed(new(), "s", MAY_HEAL, long, "run").error_message) == ERROR_CHARACTERS
