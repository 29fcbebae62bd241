"""The page's words for states."""

from datetime import UTC, datetime

import pytest

from ingest_assets.page import words
from ingest_assets.requests.asking import Kind
from resources.document_state.ingest_jobs import Errand, IngestJob, JobStatus, Outcome
from resources.document_state.model import Lifecycle, LinkState, Status
from resources.document_state.process_identity import this_process
from resources.document_state.take_up import Mode

BADGES = [
    (words.of_state, LinkState),
    (words.of_status, Status),
    (words.of_lifecycle, Lifecycle),
    (words.of_job, JobStatus),
    (words.of_outcome, Outcome),
]
ASKED = [
    *({"mode": mode} for mode in Mode),
    *({"asked": kind} for kind in Kind),
    *({"errand": each} for each in Errand),
]


@pytest.mark.parametrize(("badge_of", "states"), BADGES)
def test_every_state_has_a_word_and_a_shape(badge_of, states):
    """No state, and none that will be added, leaves a page without a word for it; none is told by its colour alone."""
    badges = [badge_of(state) for state in states]
    assert all(badge.word and badge.shape for badge in badges)
    assert len({badge.word for badge in badges}) == len(badges)


@pytest.mark.parametrize("asked", ASKED)
def test_what_a_job_was_asked_for_is_told(asked):
    """Whatever a person, a sensor or a program can ask for is told in words."""
    values = {"mode": Mode.INCREMENTAL, "created_at": datetime(2026, 1, 2, tzinfo=UTC), "owner": this_process()}
    job = IngestJob(job_id="j", scope_id="default", user_id="u", **{**values, **asked})
    assert " " in words.of_request(job)
