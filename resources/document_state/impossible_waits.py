"""Documents that wait for a time which only a clock set far ahead could give: they would wait there for months."""

from datetime import datetime

from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.transitions import CLOCK_DOUBT, waits_no_longer

_CHUNK = 1_000


async def end_impossible_waits(state: DocumentStateStore, policy: RetryPolicy, now: datetime) -> int:
    """Make due what would be due later than any pause from now on, and more than clocks may differ.

    Where it is our own clock that is wrong, far behind, some pauses end early, and nothing worse.

    Returns:
        How many documents wait no longer.
    """
    waiting = await state.list_due_after(now + policy.longest_pause + CLOCK_DOUBT)
    n_ended = 0
    for first in range(0, len(waiting), _CHUNK):
        docs = (await state.get_many(waiting[first : first + _CHUNK])).values()
        stored = await state.set_many([(waits_no_longer(doc, now), doc) for doc in docs if doc.claim is None])
        n_ended += sum(doc is not None for doc in stored)
    return n_ended
