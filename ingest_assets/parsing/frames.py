"""The bytes between parent and child.

Request: header length, content length (two unsigned 32-bit), header JSON, content.
Reply: body length, resident memory in KiB (two unsigned 32-bit), body JSON.
"""

import struct
from typing import Any

import msgspec

from .limits import Chunking, ParseLimits
from .result import ParsedDocument, ParseFailure, Unpacked

PREFIX = struct.Struct(">II")
LONGEST_CONTENT = 2**32 - 1

Outcome = ParsedDocument | ParseFailure
Reply = Outcome | Unpacked


class Setup(msgspec.Struct, frozen=True):
    """The first request's header: what holds for every document of this child."""

    limits: ParseLimits
    chunking: Chunking
    parent: int


class Request(msgspec.Struct, frozen=True):
    """The header of a document's request.

    Attributes:
        filename: what it is called.
        unpack_from: None: parse it. Else unpack it: its members from this number on are wanted.
    """

    filename: str
    unpack_from: int | None = None


class Ready(msgspec.Struct, frozen=True):
    """The reply to the setup.

    Attributes:
        missing: What the child could not take away from itself.
    """

    missing: tuple[str, ...]


encode = msgspec.json.Encoder().encode
decode_setup = msgspec.json.Decoder(Setup).decode
decode_request = msgspec.json.Decoder(Request).decode
decode_ready = msgspec.json.Decoder(Ready).decode
decode_reply = msgspec.json.Decoder(Reply).decode


def request_prefix(header: Any, content_length: int) -> bytes:
    """Prefix and header of a request; the content follows."""
    raw = encode(header)
    return PREFIX.pack(len(raw), content_length) + raw
