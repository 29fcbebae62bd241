"""Documents read in order: several at once where a read waits for a network, one by one where it does not."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from resources.document_source.document_source import DocumentSource, ReadError, ReadResult
from resources.document_state.reasons import Reason

AHEAD_BYTES = 64 * 2**20
# A slow answer must not hold up those behind it, so more are asked for than are under way at once.
_QUEUED_PER_THREAD = 4
# What was listed as small may have grown since. So much of it is read beside others, and a larger one alone.
_GROWN_BYTES = 2**20


class Readable(Protocol):
    """What is known of a document that is to be read; its size as it was listed, or 0."""

    @property
    def source(self) -> str:
        """The name of its source."""

    @property
    def source_uri(self) -> str:
        """Where it is."""

    @property
    def size(self) -> int:
        """In bytes."""


Doc = TypeVar("Doc", bound=Readable)


class ReadAhead:
    """Reads documents from their sources, at most 64 MiB ahead of whoever takes them."""

    def __init__(self, sources: Mapping[str, DocumentSource], max_file_bytes: int) -> None:
        self._sources = sources
        self._max_file_bytes = max_file_bytes

    def read_all(self, docs: Sequence[Doc]) -> Iterator[tuple[Doc, ReadResult | ReadError]]:
        """Each document, in order, with what was read of it or why it could not be."""
        at_once = max(
            (self._sources[doc.source].parallel_reads for doc in docs if doc.source in self._sources), default=1
        )
        if at_once == 1:
            for doc in docs:
                yield doc, self._read(doc, self._max_file_bytes)
            return
        threads = ThreadPoolExecutor(at_once, "read-ahead")
        try:
            yield from self._ahead(docs, threads, at_once * _QUEUED_PER_THREAD)
        finally:
            # Whoever leaves early waits for no network.
            threads.shutdown(wait=False, cancel_futures=True)

    def _ahead(
        self, docs: Sequence[Doc], threads: ThreadPoolExecutor, most: int
    ) -> Iterator[tuple[Doc, ReadResult | ReadError]]:
        waiting = deque(docs)
        asked: deque[tuple[Doc, Future[ReadResult | ReadError]]] = deque()
        n_bytes = 0
        while waiting or asked:
            while waiting and len(asked) < most and (not asked or n_bytes + waiting[0].size <= AHEAD_BYTES):
                doc = waiting.popleft()
                n_bytes += doc.size
                asked.append((doc, threads.submit(self._read, doc, self._usual_limit(doc))))
            doc, future = asked.popleft()
            read = future.result()
            n_bytes -= doc.size
            if _is_too_large(read) and self._usual_limit(doc) < self._max_file_bytes:
                read = self._read(doc, self._max_file_bytes)
            yield doc, read

    def _usual_limit(self, doc: Readable) -> int:
        return min(self._max_file_bytes, max(doc.size, _GROWN_BYTES))

    def _read(self, doc: Readable, max_bytes: int) -> ReadResult | ReadError:
        source = self._sources.get(doc.source)
        if source is None:
            known = ", ".join(sorted(self._sources))
            return ReadError(Reason.SOURCE_UNAVAILABLE, f"Its source '{doc.source}' is not configured. Known: {known}.")
        try:
            return source.read(doc.source_uri, max_bytes)
        except ReadError as error:
            return error


def _is_too_large(read: ReadResult | ReadError) -> bool:
    return isinstance(read, ReadError) and read.reason is Reason.TOO_LARGE
