"""Reading ahead: in order, several at once, within its bounds, and what cannot be read stops nobody."""

import threading
import time
from collections.abc import Callable

import pytest

from ingest_assets.engine import read_ahead
from ingest_assets.engine.read_ahead import ReadAhead
from resources.clock import utc_now
from resources.document_source.document_ids import source_uri
from resources.document_source.document_source import DocumentSource, ReadError, ReadResult
from resources.document_state import transitions
from resources.document_state.reasons import Reason

MANY = 10**9
PATIENCE = 30


class SlowSource(DocumentSource):
    """Counts the reads under way at once. None ends before there were `together`, and each takes a moment more."""

    name = "docs"

    def __init__(self, contents: dict[str, bytes | ReadError], parallel_reads: int = 8, together: int = 1) -> None:
        self.parallel_reads = parallel_reads
        self.contents = contents
        self.threads: set[str] = set()
        self.at_once = 0
        self.most_at_once = 0
        self.started: list[str] = []
        self._together = together
        self._changed = threading.Condition()

    def list_objects(self, prefix=b"", left_out=None):
        """See DocumentSource."""
        raise NotImplementedError

    def key_of_place(self, place):
        """See DocumentSource."""
        raise NotImplementedError

    def current_version(self, source_uri):
        """See DocumentSource."""
        raise NotImplementedError

    def read(self, source_uri, max_bytes):
        """See DocumentSource."""
        with self._changed:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.threads.add(threading.current_thread().name)
            self.started.append(source_uri)
            self._changed.notify_all()
        self.linger(source_uri)
        with self._changed:
            self.at_once -= 1
        content = self.contents[source_uri.partition(":")[2]]
        if isinstance(content, ReadError):
            raise content
        if len(content) > max_bytes:
            raise ReadError(Reason.TOO_LARGE, "It is too large.")
        return ReadResult(content, "v")

    def linger(self, source_uri: str) -> None:
        """What a read waits for."""
        self.wait_until(lambda: self.most_at_once >= self._together)
        time.sleep(0.005)

    def wait_until(self, reached: Callable[[], bool]) -> None:
        """Wait until the reads that were begun have made this true."""
        with self._changed:
            assert self._changed.wait_for(reached, PATIENCE)


class HeldSource(SlowSource):
    """Its first document is read at once; the other reads last until they may go on."""

    def __init__(self, contents: dict[str, bytes | ReadError]) -> None:
        super().__init__(contents)
        self.go_on = threading.Event()

    def linger(self, source_uri: str) -> None:
        """See SlowSource."""
        if source_uri != self.started[0]:
            self.go_on.wait(PATIENCE)


def docs_of(source: SlowSource, size: int | None = None, name: str = "docs"):
    """A document for each content, listed with its size or another."""
    docs = []
    for key, content in source.contents.items():
        listed = len(content) if size is None and isinstance(content, bytes) else size or 0
        uri = source_uri(name, key.encode())
        docs.append(transitions.discovered(key, "default", name, uri, "v", listed, ["s"], utc_now()))
    return docs


def read_all(source: SlowSource, docs, max_bytes: int = MANY):
    """Everything that is read, in order."""
    return list(ReadAhead({"docs": source}, max_bytes).read_all(docs))


def test_in_order_and_at_once():
    """Documents come in the order they are asked for, although several are read at once."""
    source = SlowSource({str(number): b"%d" % number for number in range(100)}, together=8)
    docs = docs_of(source)
    found = read_all(source, docs)
    assert [(doc, read.content) for doc, read in found] == [(doc, doc.document_id.encode()) for doc in docs]
    assert source.most_at_once == 8


def test_sources_that_wait_for_nobody_are_read_one_by_one():
    """Where reading is quick there are no threads: each is read when it is asked for."""
    source = SlowSource({str(number): b"" for number in range(10)}, parallel_reads=1)
    reading = ReadAhead({"docs": source}, MANY).read_all(docs_of(source))
    next(reading)
    assert len(source.started) == 1
    assert len(list(reading)) == 9
    assert source.threads == {threading.current_thread().name}


@pytest.mark.parametrize("parallel_reads", [1, 8])
def test_failures_are_results(parallel_reads):
    """A document that cannot be read, or whose source is gone, has its reason, and those around it are read."""
    error = ReadError(Reason.VANISHED, "It is gone.")
    source = SlowSource({"a": b"1", "b": error, "c": b"3"}, parallel_reads)
    [stranger] = docs_of(SlowSource({"x": b""}), name="unknown")
    (_, first), (_, second), (_, other), (_, last) = read_all(
        source, [*docs_of(source)[:2], stranger, docs_of(source)[2]]
    )
    assert (first.content, second, last.content) == (b"1", error, b"3")
    assert other.reason is Reason.SOURCE_UNAVAILABLE
    assert "Known: docs" in str(other)


@pytest.mark.parametrize("parallel_reads", [1, 8])
def test_unforeseen_errors_are_raised(parallel_reads):
    """A fault of the source itself is not taken for a document's."""
    source = SlowSource({"a": b""}, parallel_reads)
    docs = docs_of(source)
    source.contents.clear()
    with pytest.raises(KeyError):
        read_all(source, docs)


def test_bounded_by_bytes(monkeypatch):
    """No more is asked for than the bound holds, and one that is larger than it is read alone."""
    monkeypatch.setattr(read_ahead, "AHEAD_BYTES", 100)
    source = SlowSource(
        {str(number): b"x" * 40 for number in range(10)} | {"large": b"x" * 1000, "next": b""}, together=2
    )
    reading = ReadAhead({"docs": source}, MANY).read_all(docs_of(source))
    next(reading)
    source.wait_until(lambda: len(source.started) >= 2)
    assert len(source.started) == 2
    assert [len(read.content) for _, read in reading] == [40] * 9 + [1000, 0]
    assert source.most_at_once == 2


def test_grown_since_it_was_listed():
    """What is larger than it was listed is read all the same, alone, up to the limit."""
    source = SlowSource({"a": b"x" * 3 * 2**20, "b": b"x" * 2**20, "c": b"x" * 5 * 2**20})
    found = read_all(source, docs_of(source, size=10), max_bytes=4 * 2**20)
    assert [len(read.content) for _, read in found[:2]] == [3 * 2**20, 2**20]
    assert found[2][1].reason is Reason.TOO_LARGE
    assert source.started.count("docs:b") == 1


def test_leaving_early_asks_for_no_more():
    """Whoever stops taking documents waits for no read, and nothing more is read than was under way."""
    source = HeldSource({str(number): b"" for number in range(500)})
    reading = ReadAhead({"docs": source}, MANY).read_all(docs_of(source))
    next(reading)
    source.wait_until(lambda: source.at_once == 8)
    reading.close()
    assert source.at_once == 8
    source.go_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("read-ahead"):
            thread.join()
    assert len(source.started) == 9
