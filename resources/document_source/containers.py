"""Which objects are containers, and what their members are called here."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

# Office files are zips too, and documents: only these names say that somebody packed files together.
_ARCHIVES = (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".gz", ".bz2", ".xz", ".mbox")
_MAILS = (".eml",)
_LONGEST = 5
_SUFFIX = re.compile(r"(?:\.tar)?\.[A-Za-z0-9]{1,10}\Z")
_PART_BYTES = 255
_NAME_BYTES = 1000


def is_archive(name: str) -> bool:
    """Whether an object of this name, or URI, has no text of its own, only members."""
    return name[-_LONGEST:].lower().endswith(_ARCHIVES)


def is_container(name: str) -> bool:
    """Whether an object of this name, or URI, may have members."""
    return name[-_LONGEST:].lower().endswith(_ARCHIVES + _MAILS)


def names_of_ours(names: Sequence[str]) -> list[str]:
    """What the members of a container are called here, in its order: each once, and none hostile.

    A name that leads out of the container, could mislead, or was there before becomes `member-<number><suffix>`. The
    same names in the same order always become the same.
    """
    taken: set[str] = set()
    kept: list[str] = []
    for name in names:
        good = name if _is_harmless(name) and name not in taken else ""
        taken.add(good)
        kept.append(good)
    for number, name in enumerate(names):
        if not kept[number]:
            suffix = _SUFFIX.search(name)
            ours = f"member-{number + 1}{suffix[0] if suffix else ''}"
            while ours in taken:
                ours = f"another-{ours}"
            taken.add(ours)
            kept[number] = ours
    return kept


def _is_harmless(name: str) -> bool:
    parts = name.split("/")
    return (
        name.isprintable()
        and not any("\ud800" <= character <= "\udfff" for character in name)
        and not {"", ".", ".."}.intersection(parts)
        and "\\" not in name
        and not PurePosixPath(name).is_absolute()
        and len(name.encode()) <= _NAME_BYTES
        and all(len(part.encode()) <= _PART_BYTES for part in parts)
    )
