"""Bytes in, text pieces out, in a process that can be killed."""

from .confined_unpacker import ConfinedUnpacker
from .formats import CONVERSATION
from .limits import Chunking, ParseLimits
from .pool import ParserPool
from .result import ParsedDocument, ParseFailure
from .versions import parser_fingerprint

__all__ = [
    "CONVERSATION",
    "Chunking",
    "ConfinedUnpacker",
    "ParseFailure",
    "ParseLimits",
    "ParsedDocument",
    "ParserPool",
    "parser_fingerprint",
]
