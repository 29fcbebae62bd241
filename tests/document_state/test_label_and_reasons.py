"""Labels, the closed list of reasons, and the size of a record."""

import msgspec
import pytest

from resources.document_state.label import config_hash, differing_parts, label_of, read_label
from resources.document_state.model import LinkState, Phase, Presence, Status
from resources.document_state.reasons import _MEANINGS, Reason, Remedy
from tests.document_state.documents import (
    PARTS,
    build_failed,
    claimed,
    complete,
    deleted,
    extraction_failed,
    new,
    skipped,
    vanished,
)

EVERY_KIND = (
    new(),
    claimed(new()),
    complete(due_in=("s", "t")),
    extraction_failed(new(), Reason.MALFORMED),
    build_failed(Reason.STORE_MISMATCH),
    skipped(new()),
    vanished(complete()),
    deleted(complete()),
)


class TestLabel:
    @pytest.mark.parametrize("doc", EVERY_KIND)
    def test_round_trip(self, doc):
        """A label says of a document what its record says."""
        label = read_label(label_of(doc))
        assert (label.source, label.presence, label.claimed) == (doc.source, doc.presence, doc.claim is not None)
        for phase in Phase:
            assert (label.status(phase), label.reason(phase)) == (doc.phase(phase).status, doc.phase(phase).reason)
        assert {slug: state for slug, state, _ in label.links} == {
            slug: link.state for slug, link in doc.links.items() if slug in doc.due_in
        }

    def test_different_states_have_different_labels(self):
        """Documents that are counted apart carry different labels."""
        assert len({label_of(doc) for doc in EVERY_KIND}) == len(EVERY_KIND)

    def test_alike_documents_share_a_label(self):
        """Name, content and order of links do not matter: a corpus has few labels."""
        one = complete("a", due_in=("s", "t"), content="h1")
        other = complete("b", due_in=("t", "s"), content="h2")
        assert label_of(one) == label_of(other)

    def test_configuration_is_told_apart(self):
        """A document extracted under another configuration carries another label, and the content does not count."""
        assert config_hash(PARTS) == config_hash(PARTS | {"content": "other"})
        assert config_hash(PARTS) != config_hash(PARTS | {"parser": "other"})
        assert config_hash(PARTS) != config_hash(PARTS | {"chunker": PARTS["chunker"].replace("1000", "1001")})
        assert config_hash({}) == ""

    def test_what_differs_is_named(self):
        """Two configurations are told apart part by part, whatever the values are."""
        other = PARTS | {"parser": "other", "content": "other"}
        assert differing_parts(config_hash(PARTS), config_hash(PARTS)) == []
        assert differing_parts(config_hash(PARTS), config_hash(other)) == ["parser"]
        assert differing_parts("", config_hash(PARTS)) == ["chunker", "extractor", "parser"]

    def test_stores_it_is_not_due_in_do_not_count(self):
        """A link to a store that is no longer configured is no part of the label."""
        doc = msgspec.structs.replace(complete(due_in=("s", "t")), due_in=("s",))
        assert [slug for slug, _, _ in read_label(label_of(doc)).links] == ["s"]


class TestReasons:
    def test_list_is_closed(self):
        """Each reason has its meaning, and nothing else has one."""
        assert set(_MEANINGS) == set(Reason)

    @pytest.mark.parametrize("reason", Reason)
    def test_each_says_what_to_do(self, reason):
        """Each reason says whether trying helps, and a person what to do, in a sentence."""
        assert reason.remedy in Remedy
        assert reason.what_to_do[0].isupper()
        assert reason.what_to_do.endswith(".")
        assert len(reason.what_to_do) < 120

    def test_sentences_differ(self):
        """No two reasons say the same."""
        assert len({reason.what_to_do for reason in Reason}) == len(Reason)

    def test_values_are_stored_and_stay(self):
        """Names in stored records are the names of the enum, in lower case."""
        assert {reason.value for reason in Reason} == {reason.name.lower() for reason in Reason}


def test_usual_record_is_small():
    """A document with a long name in three stores takes at most 2 KB."""
    doc = complete("x" * 96, due_in=("default", "legal-v1", "english"))
    doc = msgspec.structs.replace(doc, source_uri="documents:" + "folder/" * 20 + "a name of usual length.pdf")
    assert len(msgspec.json.encode(doc)) <= 2048


def test_filename_is_the_last_part_of_the_key():
    """A person knows a document by the last part of its key, decoded; what could mislead stays encoded."""
    doc = msgspec.structs.replace(new(), source_uri="docs:a%20folder/r%C3%A9sum%C3%A9%E2%80%AE.pdf")
    assert doc.filename == "résumé%E2%80%AE.pdf"


def test_words_of_the_model():
    """The words in stored records are the design's."""
    assert [s.value for s in Status] == ["PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED"]
    assert [p.value for p in Presence] == ["present", "missing", "vanished", "deleting", "deleted", "erased"]
    assert [s.value for s in LinkState] == ["Ingested", "Stale", "Failed"]
