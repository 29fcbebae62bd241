"""What a person asks for: which documents that is, by label and by record, and what a run may do to them."""

import re

import msgspec
import pytest

from ingest_assets.requests.asking import Asked, AskedWronglyError, Kind, Where, asked_for, parse_where
from ingest_assets.upkeep.staleness import Configured
from resources.document_state import transitions
from resources.document_state.label import label_of, read_label
from resources.document_state.reasons import Reason
from tests.document_state.documents import (
    NOW,
    PARTS,
    build_failed,
    built,
    claimed,
    complete,
    content_changed,
    extracted,
    extraction_failed,
    failed_link,
    ingested,
    new,
    skipped,
    vanished,
)

CONFIGURED = Configured(
    {name: value for name, value in PARTS.items() if name != "content"},
    {"s": {"embedder": "hash 1"}, "t": {"embedder": "hash 2"}},
)
BOTH = ("s", "t")
DOCS = {
    "new": new(),
    "current in s": complete(),
    "current in s, stale in t": complete(due_in=BOTH),
    "marked in t": transitions.configuration_compared(complete(due_in=BOTH), {"s": True, "t": False}, NOW),
    "content changed": content_changed(complete(due_in=BOTH)),
    "extraction failed": extraction_failed(new(), Reason.MALFORMED),
    "s failed": build_failed(Reason.STORE_UNAVAILABLE),
    "t failed": built(
        extracted(claimed(new(due_in=BOTH))), ingested(extracted(claimed(new()))), failed_link(new(), "t")
    ),
    "skipped": skipped(new()),
    "vanished": vanished(complete(due_in=BOTH)),
}


@pytest.mark.parametrize(
    ("kind", "stores", "fitting"),
    [
        (Kind.STALE, (), {"current in s, stale in t", "marked in t"}),
        (Kind.STALE, ("s",), set()),
        (Kind.STALE, ("t",), {"current in s, stale in t", "marked in t"}),
        (Kind.FAILED, (), {"extraction failed", "s failed", "t failed"}),
        (Kind.FAILED, ("s",), {"s failed"}),
        (Kind.FAILED, ("t",), {"t failed"}),
        (Kind.MISSING, ("s",), set()),
        (Kind.MISSING, ("t",), {"current in s", "s failed"}),
        (Kind.MISSING, (), {"current in s", "s failed"}),
        (Kind.NAMED, (), set(DOCS) - {"vanished"}),
        (Kind.RENEWED, (), set(DOCS) - {"vanished"}),
    ],
)
def test_what_is_asked_for(kind, stores, fitting):
    """The label chooses just these, and a run that claims them finds the same in their records."""
    asked = Asked(kind, stores)
    assert {name for name, doc in DOCS.items() if asked.fits(read_label(label_of(doc)), CONFIGURED)} == fitting
    selection = asked.selection(CONFIGURED)
    assert selection.stores == (stores or BOTH)
    assert all(selection.wants(DOCS[name]) for name in fitting)


def test_done_meanwhile_is_not_wanted():
    """What somebody else has mended since it was chosen is not done again."""
    assert not Asked(Kind.FAILED, ("s",)).selection(CONFIGURED).wants(complete())
    assert not Asked(Kind.STALE, ("s",)).selection(CONFIGURED).wants(complete())
    assert not Asked(Kind.MISSING, ("s",)).selection(CONFIGURED).wants(complete())


def test_what_a_run_may_do():
    """Only what is missing, or was picked, comes into new stores; only what is to be up to date is extracted again."""
    for kind in Kind:
        selection = Asked(kind).selection(CONFIGURED)
        assert selection.only_due is (kind not in (Kind.MISSING, Kind.CHOSEN))
        assert selection.renew_extraction is (kind in (Kind.STALE, Kind.CHOSEN, Kind.RENEWED))
        assert not selection.force


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        ("status=failed", {"extraction failed", "s failed", "t failed"}),
        ("reason=malformed,reason=store_unavailable", {"extraction failed", "s failed", "t failed"}),
        ("status=FAILED, reason=malformed", {"extraction failed"}),
        ("state=Stale", {"marked in t", "content changed"}),
        ("source=docs  state=failed", {"s failed", "t failed"}),
        ("source=papers", set()),
    ],
)
def test_facets(text, fitting):
    """Values of one facet are alternatives, facets add up; commas and blanks separate alike."""
    where = parse_where(text)
    labels = {name: read_label(label_of(doc)) for name, doc in DOCS.items() if name != "vanished"}
    assert {name for name, label in labels.items() if where.fits(label, ())} == fitting


def test_state_is_looked_for_in_the_store():
    """With a store named, `state` means the state in that one."""
    label = read_label(label_of(DOCS["t failed"]))
    assert Where(state=("Failed",)).fits(label, ("t",))
    assert not Where(state=("Failed",)).fits(label, ("s",))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"where": "colour=red"}, "Known: source=…, reason=…, status=…, state=…"),
        ({"where": "status"}, "'status' is no facet"),
        ({"where": "status="}, "no facet"),
        ({"where": "status=FINE"}, "Known: PENDING, IN_PROGRESS, COMPLETED, FAILED, SKIPPED"),
        ({"where": "state=gone"}, "Known: Ingested, Stale, Failed"),
        ({"store": "s"}, "--store goes with"),
        ({"stale": True, "missing": True}, "only one"),
    ],
)
def test_asked_wrongly(given, told):
    """What cannot be meant is refused, with what can."""
    options = {"store": "", "stale": False, "failed": False, "missing": False, "where": ""} | given
    with pytest.raises(AskedWronglyError, match=re.escape(told)):
        asked_for(options.pop("store"), **options)


def test_nothing_asked_for_is_what_is_due():
    """Without any of the options a command is about what is due; facets alone name documents."""
    nothing = {"stale": False, "failed": False, "missing": False}
    assert asked_for("", **nothing, where="") is None
    named = asked_for("", **nothing, where="state=stale")
    assert msgspec.structs.astuple(named)[:2] == (Kind.NAMED, ())
