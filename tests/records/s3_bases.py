"""Shards too large to be put whole: how tests make and change them, and know requests for them."""

import secrets

from resources.records.record import Record, Write
from resources.records.s3.s3_backend import S3Backend
from resources.records.s3.shard import shard_of
from resources.records.s3.shard_cache import ShardCache
from tests.records.contract import KIND, put
from tests.records.s3_store import is_base

HEAD = f"state/thing/{shard_of('a', 64):03}.jsonl.zst"


KEYS = ["a", *(key for key in (f"k{i:05}" for i in range(5_000)) if shard_of(key, 64) == shard_of("a", 64))]


def bytes_of(size: int) -> bytes:
    """A value that cannot be packed much."""
    return b'"' + secrets.token_hex(size // 2).encode() + b'"'


async def change(backend: S3Backend, n: int = 20, size: int = 300) -> dict[str, Record]:
    """Change or make the first n records in one call, enough for a base of their own; the records."""
    before = await backend.read_many(KIND, KEYS[:n])
    stamps = {key: record.stamp for key, record in before.items()}
    results = await backend.compare_and_set(KIND, [Write(key, bytes_of(size), stamps.get(key)) for key in KEYS[:n]])
    assert all(result.written for result in results)
    return await backend.read_many(KIND, KEYS[:n])


async def change_one(backend: S3Backend, key: str = "a") -> Record:
    """Change one record, too little for a base."""
    found = await backend.read(KIND, key)
    await put(backend, key, b'"small"', found.stamp if found else None)
    return await backend.read(KIND, key)


async def forget(backend: S3Backend, monkeypatch) -> None:
    """Let a backend know nothing of what it has seen, as another process would."""
    await backend.create()
    monkeypatch.setattr(backend._opening.reader, "_cache", ShardCache(10_000_000))


def puts_of_bases(request) -> bool:
    """Whether a request puts a base."""
    return request.method == "PUT" and is_base(request.path)


def puts_of_heads(request) -> bool:
    """Whether a request puts the head."""
    return request.method == "PUT" and request.path.endswith(HEAD)


def gets_of_bases(request) -> bool:
    """Whether a request reads a base."""
    return request.method == "GET" and is_base(request.path)
