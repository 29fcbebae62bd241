"""What can differ between the records and what is really there."""

from enum import StrEnum

import msgspec

RECORD = "record"
ARTIFACT = "artifact"
DAGSTER = "dagster"


class What(StrEnum):
    """The kinds of differences."""

    RECORD_DAMAGED = "record damaged"  # nothing it says can be trusted
    RECORD_DIFFERS = "record differs"  # from itself, its index entries or its artifact
    ARTIFACT_LOST = "artifact lost"  # or damaged
    LINK_DIFFERS = "link differs"  # from what the store rightly holds
    NOT_HELD = "not in the store"  # though its link says so
    CONTENT_DIFFERS = "content differs"  # from the artifact
    ROWS_DAMAGED = "rows damaged"  # whatever the document shall be
    NOT_WANTED = "held unwanted"  # by no link, or though it is gone
    UNKNOWN = "unknown document"  # a store or Dagster knows it, and no record does
    NO_PARTITION = "no partition"
    PARTITION_UNWANTED = "partition unwanted"
    NOT_REPORTED = "not reported"  # complete, and not materialized


class Difference(msgspec.Struct, frozen=True, order=True):
    """One thing that is not as it should be.

    Attributes:
        document_id: of which document.
        where: `record`, `artifact`, `dagster` or the slug of a store.
        what: which kind.
        detail: more of it, for people.
    """

    document_id: str
    where: str
    what: What
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, What]:
        """What makes it the same one when it is looked at again."""
        return self.document_id, self.where, self.what


class Differences(msgspec.Struct):
    """What a pass found.

    Attributes:
        found: every difference, each document's together.
        n_documents: how many documents were looked at that are not gone.
        n_busy: of these, how many are in a worker's hands and were left out.
        n_unchecked: how many records are from before checksums.
        unreadable: stores that could not be read, so nothing was compared with them, each with what it said.
    """

    found: list[Difference] = msgspec.field(default_factory=list)
    n_documents: int = 0
    n_busy: int = 0
    n_unchecked: int = 0
    unreadable: dict[str, str] = msgspec.field(default_factory=dict)

    def of(self, *kinds: What) -> dict[str, list[str]]:
        """Ids of documents with such a difference, by where it is."""
        ids: dict[str, list[str]] = {}
        for difference in self.found:
            if difference.what in kinds:
                ids.setdefault(difference.where, []).append(difference.document_id)
        return {where: list(dict.fromkeys(found)) for where, found in ids.items()}
