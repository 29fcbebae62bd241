"""What a document's record remembers of its way."""

from datetime import UTC

import msgspec

from resources.document_state import removals, transitions
from resources.document_state.change import Part
from resources.document_state.history import REMEMBERED
from resources.document_state.model import DocStatus
from resources.document_state.reasons import Reason
from tests.document_state.documents import NOW, POLICY, SECOND, built, claimed, extracted, failed_link, ingested, new


def _told(doc: DocStatus) -> list[tuple[str, str, str]]:
    return [(change.part.value, change.store, change.state) for change in doc.history]


def test_each_outcome_is_a_line_with_its_run() -> None:
    """What a run made of a document stands in its history, in order, with the run and the time; its claim does not."""
    doc = extracted(claimed(new()))
    doc = built(doc, ingested(doc))
    assert _told(doc) == [("extraction", "", "COMPLETED"), ("store", "s", "Ingested")]
    assert {change.run_id for change in doc.history} == {"run of w1"}
    assert {change.at for change in doc.history} == {NOW.replace(microsecond=0, tzinfo=UTC)}


def test_every_attempt_is_a_line() -> None:
    """A store that refuses a document again, for the same reason, is told of again: each attempt counts."""
    doc = extracted(claimed(new()))
    doc = built(doc, failed_link(doc))
    again = claimed(doc, extract=False, worker="w2", now=NOW + SECOND)
    link = msgspec.structs.replace(failed_link(again), last_run_id="run of w2")
    again = built(again, link, now=NOW + SECOND)
    assert _told(again)[-2:] == [("store", "s", "Failed")] * 2
    assert [change.reason for change in again.history[-2:]] == [Reason.STORE_UNAVAILABLE] * 2


def test_what_no_run_did_names_none() -> None:
    """New content, a vanished file or a person's wish is nobody's run."""
    doc = extracted(claimed(new()))
    doc = built(doc, ingested(doc))
    changed = transitions.content_changed(doc, "v2", 20, ("s",), NOW + SECOND)
    assert _told(changed)[2:] == [("extraction", "", "PENDING"), ("store", "s", "Stale")]
    gone = removals.vanished(changed, NOW + SECOND)
    assert _told(gone)[4:] == [("presence", "", "vanished")]
    assert {change.run_id for change in gone.history[2:]} == {""}


def test_a_history_is_short() -> None:
    """Only the newest changes are kept, so that a record stays small however often a document is tried."""
    doc = new()
    for attempt in range(REMEMBERED + 3):
        now = NOW + attempt * SECOND
        doc = claimed(doc, now=now)
        doc = transitions.extraction_failed(doc, Reason.SOURCE_UNAVAILABLE, "no", now, POLICY)
    assert len(doc.history) == REMEMBERED
    assert doc.history[-1].at == (NOW + (REMEMBERED + 2) * SECOND).replace(microsecond=0)
    assert all(change.part is Part.EXTRACTION for change in doc.history)
