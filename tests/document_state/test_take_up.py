"""What is taken up by what: the design's table, row by row."""

import pytest

from resources.document_state import links, transitions
from resources.document_state.model import Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Action, Mode, action_for, is_taken_up
from resources.document_state.transitions import due_at
from tests.document_state.documents import (
    MAY_HEAL,
    NOW,
    SECOND,
    build_failed,
    built,
    claimed,
    complete,
    content_changed,
    deleted,
    extracted,
    extraction_failed,
    ingested,
    new,
    quarantined,
    skipped,
    vanished,
)

INCREMENTAL, RETRY, NOTHING = {Mode.INCREMENTAL, Mode.RESUME}, {Mode.RETRY_FAILED}, set()
PAUSE = 10 * SECOND


def half_built():
    """One of two stores holds it: the run ended between them."""
    doc = extracted(claimed(new(due_in=("s", "t"))))
    return built(doc, ingested(doc, "s"))


def dead_workers(doc):
    """Its worker died and the sweep gave it back."""
    return transitions.released(claimed(doc), NOW)


def stale_by_configuration():
    """Complete, and one part of its link's fingerprint is not what the configuration says today."""
    doc = extracted(claimed(new()))
    link = links.mark_ingested(doc, "s", {"content": doc.artifact_hash, "embedder": "older 1"}, "run", NOW)
    return built(doc, link)


ROWS = {
    # name: (document, when looked at, modes that take it up, what is done when it is named)
    "new": (new(), NOW, INCREMENTAL, Action.EXTRACT),
    "content changed": (content_changed(complete()), NOW, INCREMENTAL, Action.EXTRACT),
    "content changed after a final failure": (
        content_changed(extraction_failed(new(), Reason.MALFORMED)),
        NOW,
        INCREMENTAL,
        Action.EXTRACT,
    ),
    "claim of a dead worker": (dead_workers(new()), NOW, INCREMENTAL, Action.EXTRACT),
    "claim of a dead worker in the build": (
        transitions.released(extracted(claimed(new())), NOW),
        NOW,
        INCREMENTAL,
        Action.BUILD,
    ),
    "build unfinished": (half_built(), NOW, INCREMENTAL, Action.BUILD),
    "failed, may heal, not yet due": (extraction_failed(new(), MAY_HEAL), NOW, RETRY, Action.EXTRACT),
    "failed, may heal, due": (extraction_failed(new(), MAY_HEAL), NOW + PAUSE, INCREMENTAL | RETRY, Action.EXTRACT),
    "build failed, may heal, not yet due": (build_failed(Reason.STORE_UNAVAILABLE), NOW, RETRY, Action.BUILD),
    "build failed, may heal, due": (
        build_failed(Reason.STORE_UNAVAILABLE),
        NOW + PAUSE,
        INCREMENTAL | RETRY,
        Action.BUILD,
    ),
    "failed for good": (extraction_failed(new(), Reason.MALFORMED), NOW + 10**6 * SECOND, RETRY, Action.EXTRACT),
    "failed, needs a person": (
        extraction_failed(new(), Reason.PASSWORD_REQUIRED),
        NOW + 10**6 * SECOND,
        RETRY,
        Action.EXTRACT,
    ),
    "build failed, needs a person": (build_failed(Reason.STORE_MISMATCH), NOW + 10**6 * SECOND, RETRY, Action.BUILD),
    "quarantined": (quarantined(new()), NOW + 10**6 * SECOND, RETRY, Action.EXTRACT),
    "skipped": (skipped(new()), NOW + 10**6 * SECOND, NOTHING, Action.EXTRACT),
    "complete": (complete(), NOW + 10**6 * SECOND, NOTHING, None),
    "stale by configuration": (stale_by_configuration(), NOW + 10**6 * SECOND, NOTHING, None),
    "marked stale by configuration": (
        transitions.configuration_compared(complete(), {"s": False}, NOW),
        NOW + 10**6 * SECOND,
        NOTHING,
        None,
    ),
    "asked for anew and given back": (
        transitions.released(
            transitions.claimed(
                transitions.configuration_compared(complete(), {"s": False}, NOW),
                "w",
                "run",
                NOW,
                extract=False,
                renew=("s",),
            ),
            NOW,
        ),
        NOW,
        INCREMENTAL,
        Action.BUILD,
    ),
    "claimed by a worker": (claimed(new()), NOW + 10**6 * SECOND, NOTHING, Action.EXTRACT),
    "claimed again after a failure": (
        claimed(extraction_failed(new(), MAY_HEAL)),
        NOW + 10**6 * SECOND,
        NOTHING,
        Action.EXTRACT,
    ),
    "vanished": (vanished(complete()), NOW, INCREMENTAL, Action.REMOVE),
    "vanished after a failure": (
        vanished(extraction_failed(new(), Reason.MALFORMED)),
        NOW,
        INCREMENTAL,
        Action.REMOVE,
    ),
    "deleted": (deleted(complete()), NOW + 10**6 * SECOND, NOTHING, None),
    "deleted and there again": (content_changed(deleted(complete())), NOW, INCREMENTAL, Action.EXTRACT),
    "due in no store": (complete(due_in=()), NOW + 10**6 * SECOND, NOTHING, None),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("mode", Mode)
def test_is_taken_up(name, mode):
    """A request of a mode works on just the documents that the table gives it."""
    doc, now, modes, _ = ROWS[name]
    assert is_taken_up(doc, mode, now) is (mode in modes)


@pytest.mark.parametrize("name", ROWS)
def test_action(name):
    """What is done to a document follows from its record alone."""
    doc, _, _, action = ROWS[name]
    assert action_for(doc) is action


@pytest.mark.parametrize("name", ROWS)
def test_force(name):
    """Force extracts whatever is present; what is gone is removed all the same."""
    doc = ROWS[name][0]
    expected = Action.EXTRACT if doc.presence is Presence.PRESENT else ROWS[name][3]
    assert action_for(doc, force=True) is expected


@pytest.mark.parametrize("name", ROWS)
def test_due_and_taken_up_agree(name):
    """The due time that the index holds says the same as the table: due means taken up without being asked."""
    doc, now, modes, _ = ROWS[name]
    due = due_at(doc)
    assert (due is not None and due <= now) is (Mode.INCREMENTAL in modes)


@pytest.mark.parametrize("name", ROWS)
def test_not_before_its_time(name):
    """Nothing is taken up before its due time, and at it everything that is due."""
    doc = ROWS[name][0]
    due = due_at(doc)
    if due is not None:
        assert is_taken_up(doc, Mode.INCREMENTAL, due)
        assert not is_taken_up(doc, Mode.INCREMENTAL, due - SECOND / 1000)


def test_named_failures_are_the_present_ones():
    """A failed document that has left its source is removed, never retried."""
    doc = vanished(extraction_failed(new(), MAY_HEAL))
    assert doc.extraction.status is Status.FAILED
    assert not is_taken_up(doc, Mode.RETRY_FAILED, NOW)
