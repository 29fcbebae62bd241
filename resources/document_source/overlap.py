"""Sources that lie in each other: what lies in both is ingested, and found, twice."""

from collections.abc import Collection, Iterable, Sequence

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


def concerning(found: Iterable[Overlap], names: Collection[str]) -> list[Overlap]:
    """Those of some sources."""
    return [overlap for overlap in found if overlap.outer in names or overlap.inner in names]


def overlaps(sources: Sequence[DocumentSource]) -> list[Overlap]:
    """Every pair of sources that list the same, once each. Asks no server, and lists nothing."""
    found = []
    for number, one in enumerate(sources):
        for other in sources[number + 1 :]:
            for outer, inner in ((one, other), (other, one)):
                key = outer.key_of_source(inner) if outer.org_id == inner.org_id else None
                if key is not None:
                    found.append(Overlap(outer.name, inner.name, shown_key(source_uri(outer.name, key))))
                    break
    return found
