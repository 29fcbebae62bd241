"""Sources over buckets, and a proxy that lets bodies break off."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from resources.aws.location import AwsLocation
from resources.document_source.exclusion import DEFAULT_EXCLUDE
from resources.document_source.open_source import open_source
from resources.document_source.s3_source import S3Source
from tests.document_source.contract import NAMES
from tests.servers.exchange import Answer, Request
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import Fault, Forward

# A bucket's keys are UTF-8, and may look like anything else.
UTF8_NAMES = tuple(name for name in NAMES if b"\xff" not in name)
KEYS_NO_FOLDER_HOLDS = (
    b"/leading.md",
    b"double//slash.md",
    b"../up.md",
    b"a/../b.md",
    b"./here.md",
    b"blank at the end  ",
    b"blank/ /between.md",
    b"null\x00.md",
    b"escape\x1b[31m.md",
    b"return\r.md",
    b"p+lus & <tag> &amp;.md",
    b"%",
    "\uffff.md".encode(),
    b"back\\slash",
)


def source_of(bucket: str, url: str = "", prefix: str = "docs", exclude=DEFAULT_EXCLUDE, **options: str) -> S3Source:
    """The source `docs` below a prefix of a bucket."""
    query = urlencode({"endpoint_url": url, **options}) if url else ""
    source = open_source("docs", f"s3://{bucket}/{prefix}?{query}", Path(), "default", exclude)
    assert isinstance(source, S3Source)
    return source


def put(source: S3Source, key: bytes, content: bytes) -> None:
    """Write an object, around the source."""
    where: AwsLocation = source.location
    source.client.put_object(Bucket=where.name, Key=where.prefix + key.decode(), Body=content)


@dataclass(frozen=True)
class _Cut(Answer):
    """An answer whose connection breaks before its end."""

    sent: int = 0

    def encode(self, method: str) -> bytes:
        """All of the headers, and so many bytes of the body."""
        whole = super().encode(method)
        return whole[: len(whole) - len(self.body) + self.sent]


def cut_body(sent: int) -> Fault:
    """The connection breaks after so many bytes of the body."""

    def fault(_: Request, forward: Forward) -> Answer:
        answer = forward()
        return _Cut(answer.status, answer.body, answer.headers, sent)

    return fault


class ClosingProxy(FaultProxy):
    """Closes its connection after each answer, so that a body that was cut ends there."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        served = self._server.RequestHandlerClass

        class _Closing(served):
            def handle_one_request(self) -> None:
                super().handle_one_request()
                self.close_connection = True

        self._server.RequestHandlerClass = _Closing


def is_read(request: Request) -> bool:
    """Whether an object's body is asked for."""
    return request.operation == "GET"


def is_listing(request: Request) -> bool:
    """Whether objects are listed."""
    return request.operation == "LIST"


def is_next_page(request: Request) -> bool:
    """Whether a listing is to go on."""
    return "continuation-token" in request.path
