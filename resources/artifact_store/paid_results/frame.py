"""Bytes as they are kept: compressed, under a digest that shows any damage."""

import hashlib

import zstandard

_DIGEST_BYTES = 32
_LARGEST = 1 << 28


def framed(raw: bytes) -> bytes:
    """Bytes to keep."""
    return hashlib.sha256(raw).digest() + zstandard.ZstdCompressor(level=1).compress(raw)


def unframed(kept: bytes) -> bytes | None:
    """The bytes that were kept, or None if they are damaged."""
    try:
        raw = zstandard.ZstdDecompressor().decompress(kept[_DIGEST_BYTES:], max_output_size=_LARGEST)
    except zstandard.ZstdError:
        return None
    return raw if hashlib.sha256(raw).digest() == kept[:_DIGEST_BYTES] else None
