"""Sources that lie in each other: what lies in both is ingested, and found, twice."""

from collections.abc import Collection, Iterable
from itertools import combinations

import msgspec

from resources.document_source.document_ids import shown_key, source_uri
from resources.document_source.document_source import DocumentSource


class Overlap(msgspec.Struct, frozen=True):
    """Two sources of one organisation, of which the outer one lists what the inner one does.

    `key`: where the inner one lies in the outer one, for people; "" if they are the same.
    """

    outer: str
    inner: str
    key: str

    def __str__(self) -> str:
        """What that means, and what to do about it."""
        name = self.key.rpartition("/")[2]
        where = f"overlap: '{self.inner}' lies in '{self.outer}', at '{self.key}'" if self.key else "are the same place"
        leave_out = f"Put '{name}' into the `exclude` of '{self.outer}', or take" if name else "Take"
        return (
            f"Sources '{self.outer}' and '{self.inner}' {where}. What lies in both is ingested, and found, twice. "
            f"{leave_out} one of them out; docs/operating.md says how."
        )


def overlaps(sources: Iterable[DocumentSource], names: Collection[str]) -> list[Overlap]:
    """Every pair of sources that list the same, once each, one of them among `names`.

    Asks no server, and lists nothing.
    """
    found = []
    for one, other in combinations(sources, 2):
        if one.org_id != other.org_id or not (one.name in names or other.name in names):
            continue
        for outer, inner in ((one, other), (other, one)):
            key = outer.key_of_source(inner)
            if key is not None:
                found.append(Overlap(outer.name, inner.name, shown_key(source_uri(outer.name, key))))
                break
    return found
