"""One S3 object read whole, as one writing of it left it.

A body that breaks off is continued where it broke, on the condition that the object is still the same.
"""

from typing import Any

import msgspec
from botocore.exceptions import HTTPClientError, IncompleteReadError

_ATTEMPTS = 4
_CHUNK_BYTES = 1 << 20


class TooLargeError(Exception):
    """An object has more bytes than were asked for; none of them was kept."""

    def __init__(self, size: int) -> None:
        super().__init__(f"It has {size:,} bytes.")
        self.size = size


class WholeObject(msgspec.Struct, frozen=True):
    """An object's bytes and the ETag of the one writing that all of them are from."""

    content: bytes
    etag: str


def read_whole(client: Any, bucket: str, key: str, max_bytes: int) -> WholeObject:
    """Read an object.

    Args:
        client: boto3's.
        bucket: where it is.
        key: what it is called.
        max_bytes: refuse a larger one before its body is read.

    Raises:
        TooLargeError: it has more bytes.
        botocore.exceptions.ClientError: it is not there, may not be read, or (412) changed while it was read.
        botocore.exceptions.BotoCoreError: no answer, or its body broke off each time.
    """
    content = bytearray()
    etag = ""
    for attempt in range(1, _ATTEMPTS + 1):
        # One answer is of one writing. Only a second one has to be asked for the same.
        rest = {"Range": f"bytes={len(content)}-", "IfMatch": etag} if content else {}
        answer = client.get_object(Bucket=bucket, Key=key, **rest)
        if "ContentRange" not in answer:
            content.clear()
        etag = str(answer.get("ETag", ""))
        try:
            _read_body(answer, content, max_bytes)
        except (HTTPClientError, IncompleteReadError):
            if attempt == _ATTEMPTS:
                raise
            continue
        break
    return WholeObject(bytes(content), etag)


def _read_body(answer: dict[str, Any], content: bytearray, max_bytes: int) -> None:
    """Append what an answer carries."""
    body = answer["Body"]
    try:
        size = len(content) + int(answer.get("ContentLength", 0))
        if size > max_bytes:
            raise TooLargeError(size)
        while chunk := body.read(_CHUNK_BYTES):
            content += chunk
            if len(content) > max_bytes:  # the answer did not say how long it is
                raise TooLargeError(len(content))
    finally:
        # A connection whose answer was read to its end goes back to the others; any other is of no use.
        body.close()
