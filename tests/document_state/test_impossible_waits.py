"""A clock that was set far ahead for a while, and is right again, keeps no document waiting."""

from datetime import timedelta

import pytest

from resources.document_state import removals
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.impossible_waits import end_impossible_waits
from resources.document_state.model import Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import held_back
from resources.records.memory_backend import MemoryBackend
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.documents import NOW, POLICY, SECOND, claimed, complete, extraction_failed, new

AHEAD = NOW + timedelta(days=400)
UNTIL = AHEAD + timedelta(minutes=10)


@pytest.fixture(params=["memory", "sqlite"])
async def state(request, tmp_path):
    backend = MemoryBackend() if request.param == "memory" else SqliteBackend(tmp_path / "state.db")
    yield RecordDocumentStateStore(backend)
    await backend.close()


def failed(now):
    """A document whose failure may heal, and is tried again after a pause."""
    return extraction_failed(claimed(new(now=now), now=now), Reason.SOURCE_UNAVAILABLE, now=now)


_LEFT_BEHIND = {
    "discovered": new(now=AHEAD),
    "failed": failed(AHEAD),
    "held back": held_back(claimed(new(now=NOW)), Reason.SPEND_CEILING, "no money", AHEAD, UNTIL),
    "vanished": removals.vanished(complete(), AHEAD),
    "not removed": removals.removal_failed(
        claimed(removals.vanished(complete(), NOW), extract=False),
        [],
        {"s": (Reason.STORE_UNAVAILABLE, "away")},
        AHEAD,
        POLICY,
    ),
}


@pytest.mark.parametrize("left_behind", _LEFT_BEHIND)
async def test_what_the_clock_made_wait_is_due(state, left_behind):
    """Whatever waited for a time that is not to come for a year is due at once, and stands as it did."""
    [before] = await state.set_many([(_LEFT_BEHIND[left_behind], None)])
    assert await state.list_due(NOW, 10) == []
    assert await end_impossible_waits(state, POLICY, NOW) == 1
    assert await state.list_due(NOW, 10) == [before.document_id]
    after = await state.get_status(before.document_id)
    assert (after.extraction.status, after.build.reason, after.presence) == (
        before.extraction.status,
        before.build.reason,
        before.presence,
    )
    assert await end_impossible_waits(state, POLICY, NOW) == 0


async def test_pauses_that_can_be_are_kept(state):
    """A pause that a clock within a day of ours gave is waited for, and what waits for nobody is left alone."""
    waiting = failed(NOW + timedelta(hours=23))
    await state.set_many([(waiting, None), (complete("done"), None), (claimed(new("held", now=AHEAD)), None)])
    assert await end_impossible_waits(state, POLICY, NOW) == 0
    assert (await state.get_status("a")).extraction.status is Status.FAILED
    assert await state.list_due(NOW + SECOND, 10) == []
