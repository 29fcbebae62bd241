"""Any sequence of what the program may do to a document keeps the record true."""

from datetime import timedelta

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from resources.document_state import removals, store_transitions, transitions
from resources.document_state.label import label_of, read_label
from resources.document_state.model import GONE, LISTED, UNWANTED, DocStatus, LinkState, Presence, Status
from resources.document_state.reasons import Reason
from resources.document_state.take_up import Action, Mode, action_for, is_taken_up
from resources.document_state.transitions import check_transition, due_at
from tests.document_state.documents import NOW, POLICY, corrected, extracted, failed_link, ingested

STORES = ("s", "t", "u")
subsets = st.lists(st.sampled_from(STORES), unique=True).map(tuple)
reasons = st.sampled_from(Reason)
A_LONG_TIME = timedelta(days=1000)


class DocumentMachine(RuleBasedStateMachine):
    """Discovery, workers, sweeps and people at one document, each doing only what its code may do."""

    @initialize(due_in=subsets)
    def is_discovered(self, due_in):
        """A source listed it first."""
        self.now = NOW
        self.tokens: list[int] = []
        self.doc: DocStatus = transitions.discovered("a", "default", "docs", "docs:a.md", "v1", 1, due_in, self.now)

    def becomes(self, doc: DocStatus) -> None:
        """Take a change, which the table must allow."""
        check_transition(self.doc, doc)
        self.doc = doc
        self.now += timedelta(seconds=1)

    is_free = precondition(lambda self: self.doc.claim is None)
    is_held = precondition(lambda self: self.doc.claim is not None)
    is_extracting = precondition(lambda self: self.doc.claim and self.doc.extraction.status is Status.IN_PROGRESS)
    is_building = precondition(
        lambda self: (
            self.doc.claim and self.doc.presence is Presence.PRESENT and self.doc.extraction.status is Status.COMPLETED
        )
    )
    is_removing = precondition(
        lambda self: self.doc.claim and self.doc.presence in (Presence.VANISHED, Presence.DELETING)
    )
    is_wanted = precondition(lambda self: self.doc.claim is None and self.doc.presence not in UNWANTED)

    @rule(seconds=st.integers(0, 100_000))
    def time_passes(self, seconds):
        """Nothing happens."""
        self.now += timedelta(seconds=seconds)

    @is_wanted
    @rule(version=st.sampled_from(["v1", "v2", "v3"]), due_in=subsets)
    def content_changes(self, version, due_in):
        """Its source has other content, or has it again."""
        self.becomes(transitions.content_changed(self.doc, version, 2, due_in, self.now))

    @precondition(lambda self: self.doc.claim is None and self.doc.presence in LISTED)
    @rule()
    def vanishes(self):
        """Its source no longer has it, and no grace is left."""
        self.becomes(removals.vanished(self.doc, self.now))

    @precondition(lambda self: self.doc.claim is None and self.doc.presence is Presence.PRESENT)
    @rule(then=st.booleans())
    def is_missing(self, then):
        """A listing lacks it; sometimes it is there again as it was, and nothing has happened."""
        before = self.doc
        self.becomes(removals.unlisted(self.doc, timedelta(days=1), self.now))
        if then:
            self.becomes(removals.reappeared(self.doc, self.now))
            told = {"updated_at": self.doc.updated_at, "history": self.doc.history}
            assert self.doc == msgspec.structs.replace(before, **told)

    @is_free
    @rule()
    def is_to_be_deleted(self):
        """A person wants it gone."""
        self.becomes(removals.deletion_requested(self.doc, self.now))

    @precondition(lambda self: self.doc.presence is Presence.ERASED)
    @rule(due_in=subsets)
    def is_restored(self, due_in):
        """A person wants it back."""
        self.becomes(removals.restored(self.doc, due_in, self.now))

    @is_free
    @rule(force=st.booleans(), configured=subsets, asked=subsets)
    def is_claimed(self, force, configured, asked):
        """A run takes it, as the engine does: for what it needs, without stores that are not configured."""
        action = action_for(self.doc, force=force)
        if action is not None or (asked and self.doc.presence is Presence.PRESENT):
            extract = action is Action.EXTRACT
            doc = transitions.claimed(self.doc, "w", "run", self.now, extract=extract, renew=asked)
            due_in = tuple(store for store in doc.due_in if store in configured)
            self.tokens.append(doc.claim.token)
            self.becomes(msgspec.structs.replace(doc, due_in=due_in))

    @is_held
    @rule(held_token=st.integers(0, 50))
    def outruns_a_store(self, held_token):
        """A store that is ahead fenced it: its worker goes on under a larger token."""
        self.becomes(transitions.outran(self.doc, held_token, self.now))
        self.tokens.append(self.doc.token)

    @is_held
    @rule()
    def is_released(self):
        """It is given back undone."""
        self.becomes(transitions.released(self.doc, self.now))

    @is_extracting
    @rule(content=st.sampled_from(["h1", "h2"]), building=st.none() | subsets)
    def is_extracted(self, content, building):
        """Extraction made the same of it as before, or something else, for all stores or some."""
        self.becomes(extracted(self.doc, content, self.now, building))

    @precondition(
        lambda self: self.doc.claim and self.doc.extraction.status is Status.IN_PROGRESS and self.doc.artifact
    )
    @rule()
    def is_unchanged(self):
        """It was read and is as it was."""
        self.becomes(transitions.extracted_as_before(self.doc, self.now, "v4"))

    @is_extracting
    @rule(reason=reasons)
    def fails(self, reason):
        """It cannot be extracted."""
        self.becomes(transitions.extraction_failed(self.doc, reason, "detail", self.now, POLICY))

    @is_extracting
    @rule()
    def is_skipped(self):
        """It is not to be extracted."""
        self.becomes(transitions.extraction_skipped(self.doc, Reason.UNSUPPORTED_TYPE, "detail", self.now))

    @is_building
    @rule()
    def artifact_is_lost(self):
        """It is found that nothing can be built from."""
        self.becomes(transitions.artifact_lost(self.doc, self.now))

    @is_building
    @rule(written=subsets, refused=subsets, reason=reasons)
    def is_built(self, written, refused, reason):
        """Some of its stores were written, some refused, and some were not touched."""
        links = {store: ingested(self.doc, store, self.now) for store in written if store in self.doc.due_in}
        links |= {store: failed_link(self.doc, store, reason) for store in refused if store in self.doc.due_in}
        self.becomes(transitions.built(self.doc, links, self.now, POLICY))

    @is_removing
    @rule(configured=subsets)
    def is_removed(self, configured):
        """No store that is configured has it any more."""
        left = self.doc.links.keys() - set(configured)
        self.becomes(removals.removed(self.doc, configured, self.now))
        assert self.doc.links.keys() == left

    @is_removing
    @rule(gone_from=subsets, refused=subsets, reason=reasons)
    def cannot_be_removed(self, gone_from, refused, reason):
        """A store refuses to let it go; others have."""
        failures = dict.fromkeys(refused, (reason, "detail"))
        self.becomes(removals.removal_failed(self.doc, gone_from, failures, self.now, POLICY))
        assert all(self.doc.links[store].state is LinkState.FAILED for store in refused)

    @is_free
    @rule()
    def a_person_asks(self):
        """Somebody wants it tried again."""
        self.becomes(transitions.retry_requested(self.doc, self.now))

    @is_free
    @rule(current=st.dictionaries(st.sampled_from(STORES), st.booleans()))
    def is_compared_with_the_configuration(self, current):
        """A pass marks what is stale by configuration; it changes no status, and a second one changes nothing."""
        before = self.doc
        self.becomes(transitions.configuration_compared(before, current, self.now))
        assert (self.doc.extraction, self.doc.build, due_at(self.doc)) == (
            before.extraction,
            before.build,
            due_at(before),
        )
        assert transitions.configuration_compared(self.doc, current, self.now) is self.doc

    @precondition(
        lambda self: (
            self.doc.claim is None
            and self.doc.presence is Presence.PRESENT
            and self.doc.extraction.status is Status.COMPLETED
            and self.doc.artifact
        )
    )
    @rule(content=st.sampled_from(["h1", "h2", "h1 corrected"]), at_configuration=st.booleans())
    def a_person_corrects_it(self, content, at_configuration):
        """Somebody corrects chunks, or takes corrections back; what was not owed is not owed by it."""
        was_owed = self.doc.build.status is not Status.COMPLETED
        self.becomes(transitions.claimed(self.doc, "w", "correction", self.now, extract=False))
        self.tokens.append(self.doc.token)
        self.becomes(corrected(self.doc, content, now=self.now, at_configuration=at_configuration))
        assert was_owed or self.doc.build.status is Status.COMPLETED

    @is_free
    @rule(store=st.sampled_from(STORES))
    def a_store_is_dropped(self, store):
        """Its data goes as a whole."""
        self.becomes(store_transitions.store_dropped(self.doc, store, self.now))
        assert store not in self.doc.links

    @is_free
    @rule(store=st.sampled_from(STORES))
    def a_store_is_emptied(self, store):
        """It is built anew; what it held is owed to it."""
        self.becomes(store_transitions.store_emptied(self.doc, store, self.now))

    @is_free
    @rule(stores=st.sets(st.sampled_from(STORES)))
    def stores_are_unconfigured(self, stores):
        """Some stores are in the configuration no more; what they hold stays."""
        held = set(self.doc.links)
        self.becomes(store_transitions.stores_unconfigured(self.doc, set(STORES) - stores, self.now))
        assert set(self.doc.links) == held

    @invariant()
    def claimed_is_not_due(self):
        """What a worker holds, no other takes."""
        if self.doc.claim is not None:
            assert due_at(self.doc) is None
            assert not any(is_taken_up(self.doc, mode, self.now + A_LONG_TIME) for mode in Mode)
            assert self.doc.claim.token == self.doc.token

    @invariant()
    def nobody_is_in_progress_alone(self):
        """What is in progress is in somebody's hands."""
        if self.doc.claim is None:
            assert Status.IN_PROGRESS not in (self.doc.extraction.status, self.doc.build.status)

    @invariant()
    def complete_means_in_every_store(self):
        """A complete build stands in each due store at the current content, or is stale by configuration alone."""
        if self.doc.build.status is Status.COMPLETED:
            for store in self.doc.due_in:
                link = self.doc.links[store]
                if not link.on_request:
                    assert (link.state, link.parts["content"]) == (LinkState.INGESTED, self.doc.artifact_hash)

    @invariant()
    def on_request_is_stale(self):
        """Only what is stale waits for somebody to ask, and shows as such."""
        for link in self.doc.links.values():
            assert not link.on_request or link.state is LinkState.STALE

    @invariant()
    def what_is_owed_is_due(self):
        """Whatever is pending and free is due by now, so no document can be forgotten."""
        doc = self.doc
        if doc.claim is not None or doc.presence in GONE or doc.presence is Presence.MISSING:
            assert due_at(doc) is None
        elif doc.presence is not Presence.PRESENT:
            assert due_at(doc) is not None
        elif Status.PENDING in (doc.extraction.status, doc.build.status) and doc.extraction.status is not Status.FAILED:
            assert due_at(doc) <= self.now

    @invariant()
    def what_is_complete_is_not_due(self):
        """What is done is left alone."""
        doc = self.doc
        done = doc.extraction.status is Status.SKIPPED or doc.build.status is Status.COMPLETED
        if done and doc.presence is Presence.PRESENT:
            assert due_at(doc) is None

    @invariant()
    def failed_and_skipped_have_a_reason(self):
        """These two states have a reason, and no other has."""
        for phase in (self.doc.extraction, self.doc.build):
            assert (phase.reason is not None) is (phase.status in (Status.FAILED, Status.SKIPPED))

    @invariant()
    def what_is_gone_holds_nothing(self):
        """Of a document that is gone nothing is left that was read in it, and no worker touches it."""
        doc = self.doc
        if doc.presence in GONE:
            assert (doc.artifact, doc.title, doc.warnings, doc.content_version, doc.claim) == ("", "", (), "", None)
            assert action_for(doc, force=True) is None
            assert not any(is_taken_up(doc, mode, self.now + A_LONG_TIME) for mode in Mode)

    @invariant()
    def missing_since_is_of_what_is_missing(self):
        """A document has a time since when it is missing exactly while it is."""
        assert (self.doc.missing_since is not None) is (self.doc.presence is Presence.MISSING)

    @invariant()
    def tokens_grow(self):
        """No fencing token is given out twice."""
        assert self.tokens == sorted(set(self.tokens))

    @invariant()
    def label_says_what_the_record_says(self):
        """Counting by label counts the truth."""
        label = read_label(label_of(self.doc))
        assert (label.presence, label.extraction, label.build) == (
            self.doc.presence,
            self.doc.extraction.status,
            self.doc.build.status,
        )
        assert label.claimed is (self.doc.claim is not None)

    @invariant()
    def survives_encoding(self):
        """The record is stored without loss, and is small."""
        encoded = msgspec.json.encode(self.doc)
        assert msgspec.json.decode(encoded, type=DocStatus) == self.doc
        assert len(encoded) < 4096


TestDocument = DocumentMachine.TestCase
TestDocument.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
