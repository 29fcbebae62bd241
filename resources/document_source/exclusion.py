"""Which names a source leaves out: the same rule for folders and buckets."""

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

from resources.document_source.left_out import WhyLeftOut

DEFAULT_EXCLUDE = (".*", "~$*")
# They name no file, so no pattern is meant for them; a bucket's keys may have them as parts all the same.
_NO_NAMES = frozenset({b"", b".", b".."})


class Exclusion:
    """Patterns of names, as a shell's, case and all. Whatever lies below a name left out is left out with it."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)

    def why(self, key: bytes) -> WhyLeftOut | None:
        """Why a name, key or prefix is left out, by one of its parts; None: it is not."""
        for part in key.split(b"/"):
            text = "" if part in _NO_NAMES else os.fsdecode(part)
            for pattern in self._patterns if text else ():
                if fnmatchcase(text, pattern):
                    return WhyLeftOut.HIDDEN if pattern in DEFAULT_EXCLUDE else WhyLeftOut.EXCLUDED
        return None
