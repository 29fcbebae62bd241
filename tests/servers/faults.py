"""What can go wrong between a client and its server. A fault is a function: give it the request and the way on."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Self

from tests.servers.exchange import Answer, Request

# A held request that nobody lets go belongs to a test that has failed.
_PATIENCE_SECONDS = 60

# Sends the request on and gives the server's whole answer.
Forward = Callable[[], Answer]
# None closes the client's connection without an answer.
Fault = Callable[[Request, Forward], Answer | None]


def cut_before() -> Fault:
    """The connection breaks before the server hears of the request."""
    return lambda _request, _forward: None


def cut_after() -> Fault:
    """The server does what it is asked to, and the connection breaks before the client hears of it."""

    def fault(_request: Request, forward: Forward) -> None:
        forward()

    return fault


def answer(status: int, body: bytes = b"", content_type: str = "application/xml") -> Fault:
    """An answer that the server did not give; it never hears of the request."""
    return lambda _request, _forward: Answer(status, body, [("Content-Type", content_type)])


def s3_error(status: int, code: str) -> Fault:
    """An error of S3, such as 503 and `SlowDown`, 409 and `ConditionalRequestConflict`."""
    return answer(status, f"<Error><Code>{code}</Code><Message>made by the proxy</Message></Error>".encode())


def dynamodb_error(code: str, status: int = 400) -> Fault:
    """An error of DynamoDB, such as `ProvisionedThroughputExceededException`."""
    body = f'{{"__type": "com.amazonaws.dynamodb.v20120810#{code}", "message": "made by the proxy"}}'
    return answer(status, body.encode(), "application/x-amz-json-1.0")


class HeldRequests:
    """A fault, and a context manager: requests wait before the server until its end.

    A client that waits with them for a moment only may be as slow as it likes at everything else.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._arrived = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def __call__(self, _request: Request, forward: Forward) -> Answer:
        """See `Fault`."""
        self._arrived.set()
        self._ended.wait(_PATIENCE_SECONDS)
        return forward()

    async def arrival(self) -> None:
        """Wait for the first one, while the event loop goes on."""
        assert await asyncio.to_thread(self._arrived.wait, _PATIENCE_SECONDS)


def delay(seconds: float) -> Fault:
    """The request takes longer to reach the server."""

    def fault(_request: Request, forward: Forward) -> Answer:
        time.sleep(seconds)
        return forward()

    return fault
