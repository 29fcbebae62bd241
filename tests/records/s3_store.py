"""What the tests of the S3 backend share: stores in new buckets, and readings around the backend."""

import json

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
