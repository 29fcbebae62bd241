"""A listing against what is known of it, in one pass that keeps only what differs."""

from collections.abc import Iterable

import msgspec

from resources.document_source.document_ids import is_below, parent_of
from resources.document_source.document_source import SourceError, SourceObject


class Differences(msgspec.Struct):
    """A listing against what is known.

    Attributes:
        entries: what the next snapshot says, by source URI. Those that differ have the version "" until their record
            is brought up to the listing.
        news: objects that are new or have another version, as many as were asked for.
        vanished: source URIs that are known and were not listed, ascending.
        n_lost: how many of those an earlier listing had and are no members: members go with their containers.
        n_known: objects that are known below what was listed, and are no members.
        n_news: how many there are, asked for or not.
        n_changed: how many of them are known.
        n_unchanged: objects listed that are as they were.
        renewed: the entries are not those that were known.
        incomplete: what could not be listed; nothing is taken to have vanished then.
    """

    entries: dict[str, str]
    news: list[SourceObject]
    vanished: list[str]
    n_lost: int = 0
    n_known: int = 0
    n_news: int = 0
    n_changed: int = 0
    n_unchanged: int = 0
    renewed: bool = False
    incomplete: str = ""

    def agree(self, uri: str, version: str) -> None:
        """The record of an object is present and has this version; "": it is to be looked at again."""
        self.renewed |= self.entries.get(uri) != version
        self.entries[uri] = version

    def drop(self, uri: str) -> None:
        """No record of it is present any more."""
        self.renewed |= self.entries.pop(uri, None) is not None


def compare(
    listed: Iterable[SourceObject], known: dict[str, str], start: str = "", limit: int | None = None
) -> Differences:
    """Go through a listing once.

    Args:
        listed: the objects, in any order.
        known: content versions by source URI. It is used up, so that a million entries are not in memory twice.
        start: the source URI below which was listed; only there something can have vanished. "": everywhere.
        limit: most news to keep.

    Raises:
        SourceError: the listing failed; nothing may be concluded.
    """
    entries: dict[str, str] = {}
    found = Differences(entries, [], [])
    take = known.pop
    n_unchanged = n_known = 0
    unlisted: set[str] = set()
    try:
        for item in listed:
            uri, version = item.source_uri, item.content_version
            last = take(uri, None)
            if item.is_unlisted:
                unlisted.add(uri)
            n_known += last is not None and "!" not in uri
            if last == version:
                entries[uri] = version
                n_unchanged += 1
                continue
            found.n_news += 1
            if last is not None:
                entries[uri] = ""
                found.n_changed += 1
                found.renewed |= last != ""
            if limit is None or len(found.news) < limit:
                found.news.append(item)
    except SourceError as error:
        if not error.partial:
            raise
        found.incomplete = str(error)
    else:
        found.vanished = sorted(uri for uri in known if is_below(uri, start) and not _lies_in(uri, unlisted))
        lost = [uri for uri in found.vanished if not parent_of(uri)]
        found.n_lost = sum(bool(known[uri]) for uri in lost)
        found.n_known = n_known + len(lost)
    found.n_unchanged = n_unchanged
    entries.update(known)
    known.clear()
    return found


def _lies_in(uri: str, containers: set[str]) -> bool:
    """Whether an object is a member, however deep, of one of some containers."""
    while containers and (uri := parent_of(uri)):
        if uri in containers:
            return True
    return False
