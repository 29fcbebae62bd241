"""What passes through the fault proxy: a request, its answer, and their sizes."""

from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus

BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
# What belongs to one connection, and is not passed on to the next one.
HOP_BY_HOP = ("connection", "keep-alive", "expect", "transfer-encoding")


def _size(headers: list[tuple[str, str]]) -> int:
    """Headers in bytes, as they are sent."""
    return sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


@dataclass(frozen=True)
class Request:
    """A request as the client sent it. `headers` finds a header whatever the case of its name."""

    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def operation(self) -> str:
        """DynamoDB's operation, such as `PutItem`; else the method, and `LIST` for a GET that lists objects."""
        target = self.headers.get("X-Amz-Target", "")
        if target:
            return target.rpartition(".")[2]
        return "LIST" if self.method == "GET" and "list-type=" in self.path else self.method

    @property
    def conditional(self) -> bool:
        """Whether S3 is asked for a condition."""
        return "If-Match" in self.headers or "If-None-Match" in self.headers

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return len(f"{self.method} {self.path} HTTP/1.1\r\n\r\n") + _size(self.headers.items()) + len(self.body)

    def forwarded_headers(self) -> list[tuple[str, str]]:
        """The headers for the server. The Host stays the proxy's: the signature is over it."""
        return [(name, value) for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP]


@dataclass(frozen=True)
class Answer:
    """An answer as a server gave it, or a fault in its place."""

    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)

    def encode(self, method: str) -> bytes:
        """The answer on the wire. An answer to HEAD keeps the length of the body that it leaves out."""
        headers = [(name, value) for name, value in self.headers if name.lower() not in HOP_BY_HOP]
        if method != "HEAD" and self.status not in BODILESS:
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(self.body))))
        lines = [f"HTTP/1.1 {self.status} -", *(f"{name}: {value}" for name, value in headers)]
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + self.body


@dataclass
class Traffic:
    """What the proxy has seen of an operation. A request that was cut counts: the client has sent it."""

    requests: int = 0
    sent: int = 0
    received: int = 0
