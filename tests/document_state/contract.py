"""What a document state store keeps: subclass `DocumentStateStoreContract`, give it a backend."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter

import msgspec
import pytest

from resources.document_state import transitions
from resources.document_state.document_state_store import KIND, RecordDocumentStateStore
from resources.document_state.label import label_of, read_label
from resources.document_state.model import DocStatus, Phase, PhaseState, Status
from resources.document_state.reasons import Reason
from resources.document_state.stored_record import RecordFault, StoredRecord, encoded, examined
from resources.document_state.transitions import IllegalTransitionError, due_at, is_open
from resources.records.backend import BackendCorruptError, RecordBackend
from resources.records.record import Write
from tests.document_state.documents import (
    NOW,
    SECOND,
    build_failed,
    claimed,
    complete,
    deleted,
    extraction_failed,
    new,
    skipped,
    vanished,
)


def named(doc: DocStatus, document_id: str) -> DocStatus:
    """The same state of another document."""
    return msgspec.structs.replace(doc, document_id=document_id, source_uri=f"docs:{document_id}.md")


def plain(doc: DocStatus) -> DocStatus:
    """Without what the store assigns."""
    return msgspec.structs.replace(doc, version=0, write_id="")


CORPUS = {
    "new": new(),
    "claimed": claimed(new()),
    "complete": complete(),
    "failed for good": extraction_failed(new(), Reason.MALFORMED),
    "failed for now": extraction_failed(new(), Reason.SOURCE_UNAVAILABLE),
    "build failed": build_failed(Reason.STORE_UNAVAILABLE),
    "skipped": skipped(new()),
    "vanished": vanished(complete()),
    "deleted": deleted(complete()),
}


class DocumentStateStoreContract(ABC):
    @pytest.fixture
    @abstractmethod
    def backend(self, tmp_path) -> RecordBackend:
        """A backend in which nothing was written yet."""

    @pytest.fixture
    def state(self, backend):
        """The state store over the backend."""
        return RecordDocumentStateStore(backend)

    @pytest.fixture
    async def corpus(self, state):
        """A document in each state, under the state's name."""
        stored = await state.set_many([(named(doc, name), None) for name, doc in CORPUS.items()])
        assert None not in stored
        return state

    async def test_unknown_document(self, state):
        """A document that no one wrote is None, and among many it is left out."""
        assert await state.get_status("a") is None
        assert await state.get_many(["a", "b"]) == {}
        assert await state.list_incomplete(Phase.BUILD) == []
        assert await state.counts() == {}
        assert [doc async for doc in state.iter_statuses()] == []

    @pytest.mark.parametrize("name", CORPUS)
    async def test_record_comes_back_whole(self, state, name):
        """A record is read as it was written, with version and write id of the store."""
        doc = named(CORPUS[name], name)
        assert await state.set_status(name, doc)
        found = await state.get_status(name)
        assert plain(found) == doc
        assert found.version == 1
        assert found.write_id

    async def test_stored_record_equals_the_read_one(self, state):
        """What a write gives back is what a reader gets, so that it can be the next `expected`."""
        [first] = await state.set_many([(new(), None)])
        assert first == await state.get_status("a")
        [second] = await state.set_many([(claimed(first), first)])
        assert second == await state.get_status("a")
        assert second.version == 2

    async def test_expected_none_means_absent(self, state):
        """Without `expected` only an unknown document is written."""
        assert await state.set_status("a", new())
        assert not await state.set_status("a", complete())
        assert (await state.get_status("a")).extraction.status is Status.PENDING

    async def test_expected_that_differs_writes_nothing(self, state):
        """Of two who read the same record the second to write is told False."""
        await state.set_status("a", new())
        read = await state.get_status("a")
        assert await state.set_status("a", claimed(read, worker="one"), expected=read)
        assert not await state.set_status("a", claimed(read, worker="two"), expected=read)
        assert (await state.get_status("a")).claim.worker_id == "one"

    async def test_one_of_many_claimants_wins(self, state):
        """However many claim a document at once, one of them holds it."""
        await state.set_status("a", new())
        read = await state.get_status("a")
        won = await asyncio.gather(
            *(state.set_status("a", claimed(read, worker=str(i)), expected=read) for i in range(20))
        )
        assert won.count(True) == 1
        assert (await state.get_status("a")).claim.worker_id == str(won.index(True))

    async def test_illegal_transition_writes_nothing(self, state):
        """A change that the table forbids is an error, and nothing of its call is written."""
        await state.set_status("a", new())
        read = await state.get_status("a")
        illegal = msgspec.structs.replace(read, extraction=PhaseState(Status.COMPLETED, NOW))
        with pytest.raises(IllegalTransitionError):
            await state.set_many([(named(new(), "b"), None), (illegal, read)])
        assert await state.get_status("a") == read
        assert await state.get_status("b") is None

    async def test_record_is_written_under_its_own_id(self, state):
        """A record cannot be written as another document."""
        with pytest.raises(ValueError, match=r"'a'.*'b'"):
            await state.set_status("b", new())

    async def test_bulk_has_a_result_each_in_order(self, state):
        """Refused and accepted changes of one call stand in its order."""
        await state.set_status("a", new())
        stored = await state.set_many([(named(new(), "c"), None), (new(), None), (named(new(), "b"), None)])
        assert [doc and doc.document_id for doc in stored] == ["c", None, "b"]
        assert set(await state.get_many(["a", "b", "c", "d"])) == {"a", "b", "c"}

    async def test_incomplete_extraction(self, corpus):
        """Present documents whose extraction is not done, the failed and the claimed included."""
        assert await corpus.list_incomplete(Phase.EXTRACTION) == ["claimed", "failed for good", "failed for now", "new"]

    async def test_incomplete_build(self, corpus):
        """Present documents whose build is not done; what is skipped is done."""
        assert await corpus.list_incomplete(Phase.BUILD) == [
            "build failed",
            "claimed",
            "failed for good",
            "failed for now",
            "new",
        ]

    async def test_incomplete_can_be_narrowed(self, corpus):
        """A filter on the label narrows what is incomplete."""
        found = await corpus.list_incomplete(Phase.EXTRACTION, lambda label: label.extraction_reason is not None)
        assert found == ["failed for good", "failed for now"]

    async def test_due(self, corpus):
        """What wants a worker now, and what wants one after its pause; claimed, final and complete never do."""
        assert set(await corpus.list_due(NOW, 100)) == {"new", "vanished"}
        later = await corpus.list_due(NOW + 3600 * SECOND, 100)
        assert set(later) == {"new", "vanished", "failed for now", "build failed"}
        assert len(await corpus.list_due(NOW + 3600 * SECOND, 3)) == 3

    async def test_the_longest_due_come_first(self, state):
        """Documents come in the order in which they became due."""
        await state.set_many([(new(f"{i}", now=NOW - (i * 7 % 10) * SECOND), None) for i in range(10)])
        due = await state.list_due(NOW, 10)
        assert due == sorted(due, key=lambda i: -(int(i) * 7 % 10))

    async def test_counts(self, corpus):
        """Each label counts its documents, and all of them are all documents."""
        counts = await corpus.counts()
        assert counts == Counter(read_label(label_of(doc)) for doc in CORPUS.values())

    async def test_counts_follow_changes(self, state):
        """A document is counted where it stands now."""
        await state.set_status("a", new())
        read = await state.get_status("a")
        await state.set_status("a", claimed(read), expected=read)
        assert await state.counts() == {read_label(label_of(claimed(new()))): 1}

    async def test_iteration(self, corpus):
        """All records by ascending id, or those whose label passes."""
        assert [doc.document_id async for doc in corpus.iter_statuses()] == sorted(CORPUS)
        found = [doc async for doc in corpus.iter_statuses(lambda label: label.extraction is Status.FAILED)]
        assert [doc.document_id for doc in found] == ["failed for good", "failed for now"]
        assert found[0] == await corpus.get_status("failed for good")
        assert [doc async for doc in corpus.iter_statuses(lambda _: False)] == []
        assert await corpus.list_ids(lambda label: label.claimed) == ["claimed"]

    @pytest.mark.parametrize("value", [b"junk", b"{}", b'{"document_id": 3}', b""])
    async def test_damaged_record_stops_nothing(self, state, backend, value, caplog):
        """Asked for alone, it is an error that says which one; among many it is left out, named, and told of once."""
        await state.set_status("a", new())
        write = Write("broken", value, None, NOW, label_of(new("broken")), open=True)
        await backend.compare_and_set(KIND, [write])
        with pytest.raises(BackendCorruptError, match=r"'broken'.*verify --repair"):
            await state.get_status("broken")
        assert state.damaged == set()
        for where in (None, lambda label: not label.claimed):
            assert [doc.document_id async for doc in state.iter_statuses(where)] == ["a"]
            assert state.damaged == {"broken"}
        assert (await state.get_many(["a", "broken"])).keys() == {"a"}
        assert caplog.text.count("'broken' is left out") == 1
        assert set(await state.list_due(NOW, 9)) == set(await state.open_labels()) == {"a", "broken"}
        assert await state.counts() == {read_label(label_of(new())): 2}
        await state.replace_faulty([((await state.examine_many(["broken"]))["broken"], new("broken"))])
        assert (await state.get_many(["a", "broken"])).keys() == {"a", "broken"}
        assert state.damaged == set()

    @pytest.mark.parametrize("label", ["junk", "[]", ""])
    async def test_damaged_label_stops_nothing(self, state, backend, label):
        """A document whose label is none of ours is left out of what goes by labels, and named; it can be read."""
        await state.set_status("a", new("a"))
        write = Write("broken", encoded(new("broken")), None, NOW, label, open=True)
        await backend.compare_and_set(KIND, [write])
        for listing, found in (
            (state.list_ids(lambda _: True), ["a"]),
            (state.list_open(lambda _: True), ["a"]),
            (state.counts(), {read_label(label_of(new("a"))): 1}),
        ):
            assert await listing == found
            assert state.damaged == {"broken"}
            assert await state.get_many(["broken"])
            assert state.damaged == set()
        assert [doc.document_id async for doc in state.iter_statuses(lambda _: True)] == ["a"]
        assert [doc.document_id async for doc in state.iter_statuses()] == ["a", "broken"]

    async def test_record_of_another_document_is_damaged(self, state, backend):
        """What was copied under another key is not that document's, however whole it is."""
        await backend.compare_and_set(KIND, [Write("b", encoded(new("a")), None, label=label_of(new("a")))])
        assert await state.get_many(["b"]) == {}
        assert state.damaged == {"b"}

    async def test_any_changed_byte_of_a_record_is_found(self, state, backend):
        """Whichever byte of a stored record is changed, looking at it says so; the others are without fault."""
        await state.set_status("a", claimed(new("a")))
        await state.set_status("b", new("b"))
        stored = await backend.read(KIND, "a")
        for position in range(len(stored.value)):
            changed = bytearray(stored.value)
            changed[position] ^= 1 + position % 7
            assert examined(msgspec.structs.replace(stored, value=bytes(changed))).fault is RecordFault.DAMAGED
        looked_at = [found async for found in state.iter_examined()]
        assert [(found.document_id, found.fault, found.is_checked) for found in looked_at] == [
            ("a", None, True),
            ("b", None, True),
        ]

    async def test_what_stands_beside_a_record_is_compared(self, state, backend):
        """Label, due time, openness, key and build must follow from the record; one without checksum is taken."""
        doc = new("a")
        await state.set_status("a", doc)
        good = await backend.read(KIND, "a")
        unchecked = msgspec.structs.replace(good, value=msgspec.json.encode(doc))
        assert (examined(unchecked).fault, examined(unchecked).is_checked) == (None, False)
        completed = msgspec.structs.replace(doc.build, status=Status.COMPLETED)
        lying = msgspec.structs.replace(doc, build=completed)
        beside = {"due_at": due_at(lying), "label": label_of(lying), "open": is_open(lying)}
        for fault, changes in (
            (RecordFault.HINTS, {"due_at": None}),
            (RecordFault.HINTS, {"label": label_of(claimed(doc))}),
            (RecordFault.HINTS, {"open": False}),
            (RecordFault.ANOTHERS, {"key": "b"}),
            (RecordFault.BUILD, {"value": encoded(lying), **beside}),
        ):
            assert examined(msgspec.structs.replace(good, **changes)).fault is fault

    async def test_a_faulty_record_is_replaced_only_as_it_was_seen(self, state, backend):
        """Whoever mends a record writes in the place of the one looked at, and of no later one."""
        await backend.compare_and_set(KIND, [Write("a", b"junk", None)])
        seen = await state.examine_many(["a", "b"])
        assert (seen["a"].fault, seen.keys()) == (RecordFault.DAMAGED, {"a"})
        assert await state.replace_faulty([(seen["a"], new("a"))]) == [True]
        assert await state.replace_faulty([(seen["a"], new("a"))]) == [False]
        assert await state.replace_faulty([(StoredRecord("b", None, None), new("b"))]) == [True]
        assert (await state.get_many(["a", "b"])).keys() == {"a", "b"}
        again = (await state.examine_many(["b"]))["b"]
        assert await state.replace_faulty([(again, None)]) == [True]
        assert await state.get_status("b") is None

    async def test_times_are_aware_and_exact(self, state):
        """Times come back aware, to the microsecond."""
        now = NOW.replace(microsecond=123_456)
        await state.set_status("a", new(now=now))
        found = await state.get_status("a")
        assert found.created_at == found.extraction.changed_at == now
        assert found.created_at.tzinfo is not None

    async def test_released_by_anyone_can_be_claimed(self, state):
        """The whole way of a claim through the store: taken, given back, taken with a larger token."""
        await state.set_status("a", new())
        tokens = []
        for _ in range(3):
            read = await state.get_status("a")
            [held] = await state.set_many([(claimed(read), read)])
            tokens.append(held.claim.token)
            [_] = await state.set_many([(transitions.released(held, NOW), held)])
        assert tokens == [1, 2, 3]
