"""What a source listed last, kept as a hint so that an unchanged document costs no look at the state."""

from collections.abc import Mapping

import msgspec
import zstandard

from resources.artifact_store.artifact_store import ArtifactStore


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """One object as it was listed: its content version, and the id of its document, which costs a hash to work out."""

    content_version: str
    document_id: str


_decoder = msgspec.msgpack.Decoder(dict[str, Listed])
_LARGEST = 1 << 32


class ListingSnapshots:
    """A snapshot per source: what was listed, by source URI, for objects whose record agreed when it was written."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts

    def read(self, source: str) -> dict[str, Listed]:
        """The last snapshot; empty if there is none or it is damaged: it is only a hint."""
        packed = self._artifacts.read_hint(_name(source))
        if packed is None:
            return {}
        try:
            return _decoder.decode(zstandard.ZstdDecompressor().decompress(packed, max_output_size=_LARGEST))
        except (zstandard.ZstdError, msgspec.MsgspecError):
            return {}

    def write(self, source: str, listed: Mapping[str, Listed]) -> None:
        """Replace the snapshot."""
        packed = zstandard.ZstdCompressor(level=1).compress(msgspec.msgpack.encode(listed))
        self._artifacts.write_hint(_name(source), packed)


def _name(source: str) -> str:
    return f"listing/{source}"
