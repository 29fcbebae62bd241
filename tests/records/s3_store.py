"""What the tests of the S3 backend share: stores in new buckets, and readings around the backend."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor

import zstandard

from resources.aws.location import AwsLocation
from resources.records.backend import BackendUnavailableError
from resources.records.s3.s3_backend import S3Backend


class LosingS3(S3Backend):
    """Commits, then loses the reply."""

    raises = False

    async def _write(self, kind, writes):
        done = await super()._write(kind, writes)
        if self.raises:
            raise BackendUnavailableError(self.uri, "the line broke")
        return [False for _ in done]


def location_of(bucket: str, url: str, prefix: str = "state/") -> AwsLocation:
    """A store in a bucket of a server."""
    return AwsLocation("s3", bucket, prefix, url)


def objects_of(client, bucket: str) -> dict[str, bytes]:
    """All objects of a bucket, read around the backend."""
    names = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket).get("Contents", ())]
    return {name: client.get_object(Bucket=bucket, Key=name)["Body"].read() for name in names}


def lines_of(body: bytes) -> list[dict]:
    """The records of a shard's object, as any program would read them."""
    return [json.loads(line) for line in zstandard.ZstdDecompressor().decompress(body).splitlines()]


def is_base(name: str) -> bool:
    """Whether an object is a base."""
    return re.search(r"/\d{3}-[0-9a-f]{16}\.jsonl\.zst$", name) is not None


def records_of(objects: dict[str, bytes], head: str) -> dict[str, dict]:
    """The records of a shard by key, as any program would put head and base together."""
    lines = lines_of(objects[head])
    records = {}
    if lines and "base" in lines[0]:
        top = lines.pop(0)
        records = {line["key"]: line for line in lines_of(objects[head.replace(".jsonl", f"-{top['base']}.jsonl")])}
        for key in top["removed"]:
            del records[key]
    return records | {line["key"]: line for line in lines}


def pack(*lines: dict) -> bytes:
    """An object as another program would make it."""
    return zstandard.ZstdCompressor().compress("".join(json.dumps(line) + "\n" for line in lines).encode())


def line(key: str = "a", **fields) -> dict:
    """A line as we write it."""
    return {"key": key, "version": 1, "write_id": "w", "value": 1} | fields


def then(coroutine_of) -> None:
    """Run what another does in a thread and loop of its own, while the proxy holds a request."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(coroutine_of())).result()


def cut_after_and(coroutine_of):
    """The server does what it is asked, others do something, and then the connection breaks."""

    def fault(_request, forward):
        forward()
        then(coroutine_of)

    return fault
