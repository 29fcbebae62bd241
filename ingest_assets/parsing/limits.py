"""How much one document may cost, and how its text is cut: both travel to the child as they are."""

import hashlib
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

import msgspec

from .versions import library_version

_MIB = 2**20
MARKDOWN = "markdown"


class ParseLimits(msgspec.Struct, frozen=True):
    """What a single document may cost before it is refused."""

    wall_seconds: float = 60
    memory_bytes: int = 1024 * _MIB
    text_chars: int = 20_000_000
    inflated_bytes: int = 256 * _MIB
    archive_entries: int = 10_000
    nesting: int = 3
    pages: int = 2_000
    cells: int = 1_000_000

    @property
    def reply_bytes(self) -> int:
        """The longest reply a child may send: JSON of the text, escapes and overlap included."""
        return 8 * self.text_chars + _MIB


class Chunking(msgspec.Struct, frozen=True):
    """How text becomes pieces.

    Attributes:
        size: Most characters of a piece.
        overlap: Characters that neighbouring pieces may share; less than `size`.
        splitter: `markdown`, or `module:function`, a function of yours from `str` to `list[str]`. It is
            resolved in the child, never in this process.
    """

    size: int = 1000
    overlap: int = 0
    splitter: str = MARKDOWN

    def __post_init__(self) -> None:
        """Refuse what no splitter could do."""
        if self.size < 1 or not 0 <= self.overlap < self.size:
            raise ValueError(f"Chunking needs size >= 1 and 0 <= overlap < size, not {self.size} and {self.overlap}.")
        module, _, function = self.splitter.partition(":")
        if self.splitter != MARKDOWN and not (module and function):
            raise ValueError(f"Unknown splitter {self.splitter!r}. Known: {MARKDOWN}, or your own as module:function.")

    @property
    def fingerprint(self) -> str:
        """Names splitter, its version, size and overlap: documents cut under another one are stale."""
        if self.splitter == MARKDOWN:
            version = library_version("semantic-text-splitter")
        else:
            version = _source_hash(self.splitter.partition(":")[0])
        return f"{self.splitter} {version} size={self.size} overlap={self.overlap}"


@lru_cache(maxsize=16)
def _source_hash(module: str) -> str:
    """12 hex digits over a module's source, found without importing it; `unknown` when it has none."""
    path: list[str] | None = sys.path
    spec = None
    for name in module.split("."):
        spec = PathFinder.find_spec(name, path) if path else None
        if spec is None:
            return "unknown"
        path = list(spec.submodule_search_locations or ())
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return "unknown"
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:12]
