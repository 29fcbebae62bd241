"""Opens containers in a parser process, which can reach nothing and may be killed."""

import threading
from collections.abc import Iterator

from resources.document_source.unpacker import UnpackedMember, Unpacker, UnpackError

from .limits import Chunking, ParseLimits
from .pool import ParserPool
from .result import ParseFailure


class ConfinedUnpacker(Unpacker):
    """One process, started when a container is first met, and kept until `close`."""

    def __init__(self, limits: ParseLimits) -> None:
        self._limits = limits
        self._pool: ParserPool | None = None
        self._lock = threading.Lock()

    def unpack(self, filename: str, content: bytes) -> Iterator[UnpackedMember]:
        """See Unpacker."""
        given, is_last = 0, False
        while not is_last:
            reply = self._opened_pool().unpack(filename, content, given)
            if isinstance(reply, ParseFailure):
                raise UnpackError(reply.reason, reply.detail)
            given += len(reply.members)
            is_last = reply.is_last
            yield from reply.members

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _opened_pool(self) -> ParserPool:
        with self._lock:
            if self._pool is None:
                self._pool = ParserPool(1, self._limits, Chunking())
            return self._pool
