"""Why a document is stale: its record and the configuration, part by part."""

import pytest

from ingest_assets.upkeep.staleness import (
    Configured,
    PartDifference,
    Verdict,
    is_mismarked,
    is_stale,
    stale_parts,
    standings,
)
from resources.clock import to_the_second
from resources.document_state import transitions
from resources.document_state.label import label_of, read_label
from resources.document_state.reasons import Reason
from tests.document_state.documents import (
    NOW,
    PARTS,
    build_failed,
    claimed,
    complete,
    content_changed,
    deleted,
    extraction_failed,
    new,
    skipped,
    vanished,
)

EXTRACTION = {name: value for name, value in PARTS.items() if name != "content"}
SAME = Configured(EXTRACTION, {"s": {"embedder": "hash 1"}, "t": {"embedder": "hash 1"}})
OTHER_EMBEDDER = Configured(EXTRACTION, {"s": {"embedder": "hash 2"}, "t": {"embedder": "hash 1"}})
OTHER_CHUNKER = Configured(EXTRACTION | {"chunker": "markdown 1 size=500 overlap=0"}, SAME.stores)


def marked(doc, configured):
    """As the pass leaves it."""
    is_current = {slug: not is_stale(doc, slug, configured) for slug in doc.due_in}
    return transitions.configuration_compared(doc, is_current, NOW)


@pytest.mark.parametrize(
    ("doc", "extraction", "store"),
    [
        (complete(), Verdict.CURRENT, Verdict.CURRENT),
        (new(), Verdict.PENDING, Verdict.PENDING),
        (claimed(new()), Verdict.IN_PROGRESS, Verdict.IN_PROGRESS),
        (extraction_failed(new(), Reason.MALFORMED), Verdict.FAILED, Verdict.PENDING),
        (skipped(new()), Verdict.SKIPPED, Verdict.SKIPPED),
        (build_failed(Reason.STORE_UNAVAILABLE), Verdict.CURRENT, Verdict.FAILED),
        (content_changed(complete()), Verdict.PENDING, Verdict.STALE),
        (complete(due_in=("t",)), Verdict.CURRENT, Verdict.MISSING),
    ],
)
def test_verdicts(doc, extraction, store):
    """Each state has its verdict, and whatever is not done says why and, if somebody can help, what to do."""
    found = standings(doc, SAME, ["s"])
    assert [standing.verdict for standing in found] == [extraction, store]
    for standing in found:
        assert standing.is_current or standing.why or standing.differences
        if standing.verdict in (Verdict.MISSING, Verdict.FAILED):
            assert standing.what_to_do


@pytest.mark.parametrize("mark", [False, True])
def test_a_stores_part(mark):
    """Another embedder makes one store stale, from the old to the new one, whether a pass has marked it or not."""
    doc = complete(due_in=("s", "t"))
    extraction, s, t = standings(marked(doc, OTHER_EMBEDDER) if mark else doc, OTHER_EMBEDDER, ["s", "t"])
    assert (extraction.verdict, t.verdict) == (Verdict.CURRENT, Verdict.CURRENT)
    assert (s.verdict, s.differences) == (Verdict.STALE, (PartDifference("embedder", "hash 1", "hash 2"),))
    assert s.what_to_do == "`ingest run --store s --stale`"
    assert str(s.differences[0]) == "embedder: hash 1 → hash 2"


@pytest.mark.parametrize("mark", [False, True])
def test_the_extractions_part(mark):
    """Another chunker makes the extraction and every store stale."""
    doc = complete()
    extraction, store = standings(marked(doc, OTHER_CHUNKER) if mark else doc, OTHER_CHUNKER, ["s"])
    assert extraction.verdict is store.verdict is Verdict.STALE
    assert extraction.differences == store.differences
    assert extraction.differences[0].part == "chunker"


def test_content():
    """A store of older content says which it holds, and that nobody needs to do anything but run."""
    [_, store] = standings(content_changed(complete()), SAME, ["s"])
    assert store.differences == (PartDifference("content", "h1", "not extracted yet"),)
    assert store.what_to_do == "`ingest run`"


def test_marked_under_another_configuration():
    """A mark that outlived its configuration is explained, and how it goes away."""
    [_, store] = standings(marked(complete(), OTHER_EMBEDDER), SAME, ["s"])
    assert (store.verdict, store.what_to_do) == (Verdict.STALE, "`ingest plan --apply`")


def test_times_are_told_as_everywhere():
    """When a failure is tried again is told to the second and with its zone, as other commands show times."""
    doc = extraction_failed(new(), Reason.SOURCE_UNAVAILABLE)
    [extraction] = standings(doc, SAME, [])
    assert extraction.why.endswith(f"Tried again at {to_the_second(doc.extraction.waits_until)} UTC.")


def test_gone():
    """What is gone owes nothing, but a store that still holds it is to be rid of it."""
    assert [s.verdict for s in standings(vanished(complete()), SAME, ["s", "t"])] == [Verdict.GONE, Verdict.PENDING]
    assert [s.verdict for s in standings(deleted(complete()), SAME, ["s"])] == [Verdict.GONE]


def test_extracted_by_another_tool():
    """It has no fingerprint of ours, so no configuration makes it stale."""
    doc = transitions.extracted_elsewhere(new(), "point", 3, NOW)
    [extraction, store] = standings(doc, OTHER_CHUNKER, ["s"])
    assert (extraction.verdict, store.verdict) == (Verdict.CURRENT, Verdict.MISSING)


@pytest.mark.parametrize(
    ("doc", "configured", "parts"),
    [
        (complete(), SAME, []),
        (complete(), OTHER_EMBEDDER, ["embedder"]),
        (complete(), OTHER_CHUNKER, ["chunker"]),
        (marked(complete(), OTHER_CHUNKER), OTHER_CHUNKER, ["chunker"]),
        (content_changed(complete()), SAME, ["content"]),
        (build_failed(Reason.STORE_UNAVAILABLE), OTHER_EMBEDDER, []),
        (vanished(complete()), OTHER_EMBEDDER, []),
        (complete(due_in=("t",)), OTHER_EMBEDDER, []),
    ],
)
def test_label_and_record_agree(doc, configured, parts):
    """What a label says of many documents, each record says of itself."""
    assert stale_parts(read_label(label_of(doc)), "s", configured) == parts
    if doc.presence == "present":
        assert is_stale(doc, "s", configured) is bool(parts)


def test_what_a_pass_looks_at():
    """Only labels whose mark is not what the configuration says, whatever is failed, changed or gone."""
    for configured in (OTHER_EMBEDDER, OTHER_CHUNKER):
        doc = complete()
        assert is_mismarked(read_label(label_of(doc)), configured)
        assert not is_mismarked(read_label(label_of(marked(doc, configured))), configured)
        assert is_mismarked(read_label(label_of(marked(doc, configured))), SAME)
        assert not is_mismarked(read_label(label_of(doc)), SAME)
        for other in (vanished(doc), content_changed(doc), build_failed(Reason.STORE_UNAVAILABLE)):
            assert not is_mismarked(read_label(label_of(other)), SAME)
