"""What a discovery did, in numbers and in words."""

from collections.abc import Mapping

import msgspec

from resources.document_source.left_out import LeftOut
from resources.document_source.overlap import Overlap


class Discovered(msgspec.Struct):
    """What a discovery did.

    Attributes:
        new, changed, vanished: ids of documents that became due by it.
        n_unchanged: objects listed that are as they were.
        n_missing: objects that are not listed, whose documents are left alone until the grace period is over.
        n_damaged: objects whose document's record is damaged; every listing sees them again until it is mended.
        n_busy: changed objects whose document a worker holds; the next listing sees them again.
        vanished_refused: how many missing documents were kept, because so many at once look like a source that lies.
        incomplete: what could not be listed; nothing was taken to have vanished then.
        truncated: more has changed than one discovery may take; the next one goes on.
        left_out: what lies in the source and is no document.
        overlaps: sources that list the same.
    """

    new: list[str] = []
    changed: list[str] = []
    vanished: list[str] = []
    n_unchanged: int = 0
    n_missing: int = 0
    n_busy: int = 0
    n_damaged: int = 0
    vanished_refused: int = 0
    truncated: bool = False
    incomplete: str = ""
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)
    overlaps: list[Overlap] = []

    @property
    def n_listed(self) -> int:
        """How many objects were listed and looked at."""
        return self.n_unchanged + len(self.new) + len(self.changed) + self.n_busy


def total(results: Mapping[str, Discovered]) -> Discovered:
    """The discoveries of several sources as one."""
    whole = Discovered()
    for result in results.values():
        whole.new += result.new
        whole.changed += result.changed
        whole.vanished += result.vanished
        whole.n_unchanged += result.n_unchanged
        whole.n_missing += result.n_missing
        whole.n_busy += result.n_busy
        whole.n_damaged += result.n_damaged
        whole.vanished_refused += result.vanished_refused
        whole.truncated |= result.truncated
        whole.incomplete = whole.incomplete or result.incomplete
        whole.left_out.add_all(result.left_out)
    return whole


def describe(found: Discovered) -> str:
    """A discovery in a sentence or two."""
    counts = f"{len(found.new)} new, {len(found.changed)} changed, {len(found.vanished)} vanished"
    parts = [f"{counts}, {found.n_unchanged} unchanged."]
    if found.n_missing:
        parts.append(f"{found.n_missing} are missing, and stay until the grace period is over.")
    if found.n_busy:
        parts.append(f"{found.n_busy} are being worked on and are looked at again.")
    if found.n_damaged:
        parts.append(f"{found.n_damaged} have a damaged record and are left out: `ingest verify --repair` mends it.")
    if found.incomplete:
        parts.append(found.incomplete)
    if found.truncated:
        parts.append("There is more; the next listing goes on.")
    if found.vanished_refused:
        parts.append(disbelief(found))
    return " ".join(parts)


def disbelief(found: Discovered) -> str:
    """Why a listing was not believed, and what to do if it was true."""
    return (
        f"{found.vanished_refused} known documents were not listed. So many at once look like a source that is not "
        "whole, so nothing was removed. If they are really gone: `ingest run --accept-vanished`."
    )
