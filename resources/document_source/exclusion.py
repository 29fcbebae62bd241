"""Which names a source leaves out: the same rule for folders and buckets."""

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

DEFAULT_EXCLUDE = (".*", "~$*")
# They name no file, so no pattern is meant for them; a bucket's keys may have them as parts all the same.
_NO_NAMES = frozenset({b"", b".", b".."})


class Exclusion:
    """Patterns of names, as a shell's, case and all. Whatever lies below a name left out is left out with it."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)

    def leaves_out_name(self, name: bytes) -> bool:
        """Whether a file or folder of this name is left out."""
        text = os.fsdecode(name)
        return any(fnmatchcase(text, pattern) for pattern in self._patterns)

    def leaves_out(self, key: bytes) -> bool:
        """Whether a key or prefix is left out, by any of its parts."""
        return any(self.leaves_out_name(part) for part in key.split(b"/") if part not in _NO_NAMES)
