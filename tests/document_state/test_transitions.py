"""What may follow what in a document's record; its claims, attempts and pauses."""

from datetime import timedelta
from itertools import product

import msgspec
import pytest

from resources.document_state import links, removals, store_transitions, transitions
from resources.document_state.model import Phase, PhaseState, Presence, Status
from resources.document_state.reasons import Reason, Remedy
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.transitions import CLOCK_DOUBT, ERROR_CHARACTERS, IllegalTransitionError, due_at
from tests.document_state.documents import (
    LATER,
    MAY_HEAL,
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
