"""What of a record is never set but follows: the build's status, and the whole in one word."""

from itertools import product

import msgspec
import pytest

from resources.document_state import links, removals
from resources.document_state.model import Lifecycle, Status
from resources.document_state.reasons import Reason
from resources.document_state.transitions import due_at
from tests.document_state.documents import (
    LATER,
    MAY_HEAL,
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
    skipped,
    vanished,
)

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
