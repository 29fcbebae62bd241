"""What can go wrong between a client and its server. A fault is a function: give it the request and the way on."""

import time
from collections.abc import Callable

from tests.servers.exchange import Answer, Request

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


def delay(seconds: float) -> Fault:
    """The request takes longer to reach the server."""

    def fault(_request: Request, forward: Forward) -> Answer:
        time.sleep(seconds)
        return forward()

    return fault
