"""What lies in a source's containers, kept as a hint so that an unchanged container is not opened at every listing."""

from typing import Protocol

import msgspec
import zstandard

from resources.document_source.member_tree import Member

_LARGEST = 1 << 30


class Hints(Protocol):
    """Where a hint is kept; it may be lost or old."""

    def write_hint(self, name: str, value: bytes) -> None:
        """Keep a hint under a name, replacing the one before."""

    def read_hint(self, name: str) -> bytes | None:
        """The hint of a name, or None."""


class MemberTable(msgspec.Struct, frozen=True, array_like=True):
    """What lies in a container of this version. `is_unlisted`: it cannot be opened."""

    version: str
    members: list[Member]
    is_unlisted: bool = False


class _Tables(msgspec.Struct, frozen=True, array_like=True):
    made_under: str
    by_uri: dict[str, MemberTable]


_decoder = msgspec.msgpack.Decoder(_Tables)


class MemberTables:
    """The tables of one source's containers."""

    def __init__(self, hints: Hints, source: str, org_id: str, made_under: str) -> None:
        """Nothing is read yet.

        Args:
            hints: where they are kept.
            source: whose containers.
            org_id: whose source: others may have one of that name.
            made_under: what decides what a container's table is: limits and versions. Tables of others are of no use.
        """
        self._hints = hints
        self._name = f"members/{org_id}/{source}"
        self._made_under = made_under

    def read(self) -> dict[str, MemberTable]:
        """Every table by the container's source URI; none if they are lost, damaged or of other limits."""
        kept = self._hints.read_hint(self._name)
        if kept is None:
            return {}
        try:
            tables = _decoder.decode(zstandard.ZstdDecompressor().decompress(kept, max_output_size=_LARGEST))
        except (zstandard.ZstdError, msgspec.MsgspecError):
            return {}
        return tables.by_uri if tables.made_under == self._made_under else {}

    def write(self, by_uri: dict[str, MemberTable]) -> None:
        """Keep these, instead of all others."""
        packed = msgspec.msgpack.encode(_Tables(self._made_under, by_uri))
        self._hints.write_hint(self._name, zstandard.ZstdCompressor(level=1, write_checksum=True).compress(packed))
