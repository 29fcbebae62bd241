"""The checker itself, on histories made by hand."""

import itertools

import pytest

from tests.linearizability import models
from tests.linearizability.checker import Operation, by_object, linearization, shown
from tests.linearizability.models import Change, Seen

NEW = Seen("t0", 1, "", 0)


def get(answer, begin, end, client=0):
    """A reading."""
    return Operation(client, "get", "a", begin, end, None, answer)


def change(name, expected, tag, begin, end, worker="", *, written=True):
    """A conditional write that was answered."""
    return Operation(1, name, "a", begin, end, Change(expected, tag, worker), written)


def refused(name, expected, tag, begin, end):
    """A conditional write that was refused."""
    return change(name, expected, tag, begin, end, written=False)


def unanswered(expected, tag, begin):
    """A conditional write of which nobody knows."""
    return Operation(1, "set", "a", begin, None, Change(expected, tag))


def create(tag="t0", begin=0, end=1):
    """The first write of a document."""
    return change("create", None, tag, begin, end)


def names(order):
    """The tags of the writes, and "get" for the readings, in their order."""
    return [operation.given.tag if operation.given else "get" for operation in order]


def of_document(*history):
    return linearization(history, models.document, None)


CLAIMED = Seen("t1", 2, "w1", 1)
RELEASED = Seen("t2", 3, "", 1)


class TestDocument:
    def test_nothing_happened(self):
        """An empty history has happened."""
        assert of_document() == []

    def test_one_after_the_other(self):
        """What was done in turn is explained in its turn, whatever order it is handed in."""
        history = [
            create(),
            change("claim", NEW, "t1", 2, 3, "w1"),
            change("release", CLAIMED, "t2", 4, 5),
            get(RELEASED, 6, 7),
            change("claim", RELEASED, "t3", 8, 9, "w2"),
            get(Seen("t3", 4, "w2", 2), 10, 11),
        ]
        for order in itertools.islice(itertools.permutations(history), 0, 720, 37):
            assert of_document(*order) == history

    def test_overlapping_operations_may_change_places(self):
        """A reading that overlaps a write may have come before or after it."""
        for answer in (None, NEW):
            assert of_document(create(begin=0, end=5), get(answer, 1, 4)) is not None

    def test_the_earlier_answer_may_be_the_later_effect(self):
        """Of overlapping operations the one that began last may have happened first."""
        slow = refused("set", NEW, "t1", 2, 9)
        quick = change("set", NEW, "t2", 3, 4)
        assert names(of_document(create(), slow, quick)) == ["t0", "t2", "t1"]

    def test_time_is_kept(self):
        """A reading that began after a write was answered sees it."""
        assert of_document(create(), get(None, 2, 3)) is None

    def test_no_going_back(self):
        """Who reads after another has read the new state never reads the old one, though the write is still on."""
        writing = change("set", NEW, "t1", 2, 20)
        new, old = get(Seen("t1", 2, "", 0), 3, 4), get(NEW, 5, 6)
        assert of_document(create(), writing, new, old) is None
        assert of_document(create(), writing, new, old._replace(invoked=4)) is not None

    @pytest.mark.parametrize("second", [change("set", NEW, "t2", 2, 5), change("claim", NEW, "t2", 2, 5, "w2")])
    def test_two_winners(self, second):
        """Of two who have read the same record one may be told that it was written."""
        assert of_document(create(), change("claim", NEW, "t1", 2, 5, "w1"), second) is None

    def test_two_creators(self):
        """A document is created once."""
        assert of_document(create("t0", begin=0, end=5), create("t1", begin=0, end=5)) is None
        assert of_document(create("t0", begin=0, end=5), refused("create", None, "t1", 0, 5)) is not None

    def test_refused_without_a_cause(self):
        """A write from the current record is not refused, and one that was refused is not read."""
        assert of_document(create(), refused("set", NEW, "t1", 2, 3)) is None
        overtaken = change("set", NEW, "t2", 2, 3)
        lost = refused("set", NEW, "t1", 2, 3)
        assert of_document(create(), overtaken, lost, get(Seen("t2", 2, "", 0), 4, 5)) is not None
        assert of_document(create(), overtaken, lost, get(Seen("t1", 2, "", 0), 4, 5)) is None

    def test_lost_write(self):
        """A write that was answered with success is there."""
        assert of_document(create(), change("set", NEW, "t1", 2, 3), get(NEW, 4, 5)) is None

    @pytest.mark.parametrize("token", [0, 2, 7])
    def test_tokens_grow_by_one(self, token):
        """A claim carries the next token, no other."""
        claim = change("claim", NEW, "t1", 2, 3, "w1")
        assert of_document(create(), claim, get(Seen("t1", 2, "w1", token), 4, 5)) is None

    def test_release_ends_the_claim(self):
        """After a release the old owner is not read any more, and it cannot write from its own record."""
        history = [
            create(),
            change("claim", NEW, "t1", 2, 3, "w1"),
            change("take over", CLAIMED, "t2", 4, 5),
        ]
        assert of_document(*history, get(Seen("t2", 3, "w1", 1), 6, 7)) is None
        assert of_document(*history, change("release", CLAIMED, "t3", 6, 7)) is None
        assert of_document(*history, refused("release", CLAIMED, "t3", 6, 7)) is not None


class TestUnknown:
    UNKNOWN = unanswered(NEW, "t1", 2)
    AFTER = Seen("t1", 2, "", 0)

    def test_may_have_happened(self):
        """A write that was never answered may be read."""
        assert names(of_document(create(), self.UNKNOWN, get(self.AFTER, 3, 4))) == ["t0", "t1", "get"]

    def test_may_never_have_happened(self):
        """It may never be read, however late one looks."""
        assert names(of_document(create(), self.UNKNOWN, get(NEW, 100, 101))) == ["t0", "get"]

    def test_may_happen_late(self):
        """It may take effect long after its client has given up."""
        history = [create(), self.UNKNOWN, get(NEW, 50, 51), get(self.AFTER, 100, 101)]
        assert names(of_document(*history)) == ["t0", "get", "t1", "get"]

    def test_not_before_it_began(self):
        """It takes effect after it began."""
        assert of_document(create(), self.UNKNOWN, get(self.AFTER, 1, 1)) is None

    def test_not_twice(self):
        """It takes effect once: what came after it is not undone by it."""
        over = change("set", self.AFTER, "t2", 5, 6)
        history = [create(), self.UNKNOWN, get(self.AFTER, 3, 4), over]
        assert of_document(*history, get(Seen("t2", 3, "", 0), 7, 8)) is not None
        assert of_document(*history, get(self.AFTER, 7, 8)) is None

    def test_many_are_searched_quickly(self):
        """Twenty writes that nobody answered, each possible first, are no obstacle to the proof that none explains."""
        unknown = [unanswered(NEW, f"u{i}", 2) for i in range(20)]
        reads = [get(NEW, 3 + i, 40) for i in range(20)]
        assert of_document(create(), *unknown, *reads, get(Seen("u7", 2, "", 0), 41, 42)) is not None
        assert of_document(create(), *unknown, *reads, get(Seen("x", 2, "", 0), 41, 42)) is None


class TestWorker:
    @staticmethod
    def explained(*history):
        """Whether a worker explains operations (name, answer, begin, end)."""
        operations = [Operation(0, name, "w", begin, end, None, answer) for name, answer, begin, end in history]
        return linearization(operations, models.worker, initial=False) is not None

    def test_lives_until_it_is_buried(self):
        """A worker renews what it holds until it is declared dead, and then never."""
        assert self.explained(("hold", True, 0, 1), ("bury", True, 2, 3), ("hold", False, 4, 5))
        assert not self.explained(("bury", True, 0, 1), ("hold", True, 2, 3))
        assert not self.explained(("bury", True, 0, 1), ("hold", False, 2, 3), ("hold", True, 4, 5))

    def test_is_not_dead_without_a_verdict(self):
        """Nobody is told that it is dead before somebody said so."""
        assert not self.explained(("hold", False, 0, 1))
        assert not self.explained(("bury", False, 0, 1), ("hold", False, 2, 3))
        assert not self.explained(("hold", False, 0, 1), ("bury", True, 2, 3))

    def test_verdict_that_nobody_answered(self):
        """A verdict whose answer was lost may hold, and then holds for good."""
        unknown = ("bury", None, 0, None)
        assert self.explained(unknown, ("hold", True, 1, 2), ("hold", False, 3, 4))
        assert not self.explained(unknown, ("hold", False, 1, 2), ("hold", True, 3, 4))

    def test_renewal_that_nobody_answered(self):
        """A renewal whose answer was lost says nothing."""
        assert self.explained(("bury", True, 0, 1), ("hold", None, 2, None), ("hold", False, 3, 4))


def test_objects_are_apart():
    """Operations of several objects are told apart by their key."""
    history = [create(), create()._replace(key="b")]
    assert by_object(history) == {"a": [history[0]], "b": [history[1]]}


def test_shown_for_people():
    """A history is shown by time, an unanswered operation as unknown."""
    lines = shown([get(NEW, 9000, 10_000), unanswered(NEW, "t1", 1000)]).splitlines()
    assert [line.split()[:2] for line in lines] == [["0", "unknown"], ["8", "9"]]
    assert "client 1  set a" in lines[0]
