"""The log of a reservation's calls: what is begun and paid adds up, whatever the order, and a seal is for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results.call_log import CallLog, ReservationClosedError, pack_log, unpack_log
from resources.artifact_store.paid_results.log_change import apply_all, beginning, paying, sealing
from resources.artifact_store.paid_results.usage import Usage
from tests.paid_results.contract import call

LIMIT = 100
numbers = st.integers(0, 5)
changes = st.lists(
    st.one_of(
        st.builds(lambda n, worst: beginning("r", [call(f"c{n}", worst)]), numbers, st.integers(0, 60)),
        st.builds(lambda n, cost: paying("r", f"c{n}", Usage(1, 1, cost)), numbers, st.integers(0, 60)),
        st.just(sealing("r")),
    ),
    max_size=20,
)


@given(changes)
def test_sum_is_that_of_the_calls(given_changes):
    """The kept sum is what the calls add up to, unknown bills at their worst; only a real bill can exceed the limit."""
    log, _ = apply_all(CallLog("r", "w", LIMIT), given_changes)
    bills = [each.worst_micro_usd if each.usage is None else each.usage.micro_usd for each in log.calls.values()]
    assert log.micro_usd == sum(bills)
    cheap = all(each.usage is None or each.usage.micro_usd <= each.worst_micro_usd for each in log.calls.values())
    assert log.micro_usd <= LIMIT or not cheap
    assert unpack_log(pack_log(log)) == log


@given(changes)
def test_changes_may_be_applied_again(given_changes):
    """A writer that lost the reply to its last change tries it again on what is there: nothing changes."""
    log, outcomes = apply_all(CallLog("r", "w", LIMIT), given_changes)
    if given_changes and not isinstance(outcomes[-1], ArtifactStoreError):
        again, _ = apply_all(log, given_changes[-1:])
        assert again == log


@given(changes)
def test_seal_is_for_ever(given_changes):
    """What is sealed never changes again, whatever comes late."""
    sealed = CallLog("r", "w", LIMIT).begun([call("c0", 10)]).to_seal()
    assert apply_all(sealed, given_changes)[0] == sealed
    with pytest.raises(ReservationClosedError):
        sealed.begun([call("c1")])


@given(st.builds(Usage, st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)), st.integers(1, 9))
def test_shares_add_up(usage, n):
    """The shares of a call's answers are even, and their sum is the call's usage to the last millionth."""
    total = Usage()
    for share in usage.shared(n):
        total = total.plus(share)
        assert 0 <= usage.micro_usd // n <= share.micro_usd <= usage.micro_usd // n + 1
    assert total == usage
