"""Threads for requests that block, so that no event loop ever does. Any thread and any loop may use them."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from resources.aws.client import CONNECTIONS

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A pool as large as a client has connections; made when it is needed, and again after it was closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function in a thread, now or when one is free."""
        # Under the lock, so that the pool is not closed in between.
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="records-s3")
            return self._pool.submit(function, *args, **kwargs)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Wait for a function that runs in a thread."""
        return await asyncio.wrap_future(self.submit(function, *args, **kwargs))

    def close(self) -> None:
        """Wait for what is under way, then end the threads. Blocks."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
