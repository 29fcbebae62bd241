"""What a source listed last, kept as a hint so that an unchanged document costs no look at the state.

A snapshot carries an id, because a hint may be lost, damaged, old or another process's: only the state knows which
snapshot is right (see `sensors.listing`).
"""

from collections.abc import Mapping
from itertools import islice

import msgspec
import zstandard

from resources.artifact_store.artifact_store import ArtifactStore

# A million entries are packed and unpacked in pieces, so that they are never in memory twice.
_ENTRIES_A_BLOCK = 20_000
_LARGEST_BLOCK = 1 << 30


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot as it is kept: each block is a map from source URI to content version, packed and compressed."""

    snapshot: str
    blocks: list[memoryview]


_packed = msgspec.msgpack.Decoder(_Packed)
_block = msgspec.msgpack.Decoder(dict[str, str])


class ListingSnapshots:
    """A snapshot per source: content versions by source URI."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts

    def read(self, source: str, snapshot: str) -> dict[str, str] | None:
        """The entries of a snapshot; None if it is not there any more, or damaged: it is only a hint."""
        kept = self._artifacts.read_hint(_name(source))
        if kept is None:
            return None
        entries: dict[str, str] = {}
        decompressor = zstandard.ZstdDecompressor()
        try:
            packed = _packed.decode(kept)
            if packed.snapshot != snapshot:
                return None
            for block in packed.blocks:
                entries.update(_block.decode(decompressor.decompress(block, max_output_size=_LARGEST_BLOCK)))
        except (zstandard.ZstdError, msgspec.MsgspecError):
            return None
        return entries

    def write(self, source: str, snapshot: str, entries: Mapping[str, str]) -> None:
        """Replace the source's snapshot."""
        compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
        encoder = msgspec.msgpack.Encoder()
        remaining = iter(entries.items())
        blocks: list[memoryview] = []
        while block := dict(islice(remaining, _ENTRIES_A_BLOCK)):
            blocks.append(memoryview(compressor.compress(encoder.encode(block))))
        self._artifacts.write_hint(_name(source), encoder.encode(_Packed(snapshot, blocks)))


def _name(source: str) -> str:
    return f"listing/{source}"
