"""What a listing saw and did not give: counted by why, so that nobody misses a document without a word."""

from enum import StrEnum

import msgspec


class WhyLeftOut(StrEnum):
    """Why something that lies in a source is no document."""

    EXCLUDED = "excluded"  # its name matches `exclude`, and all below it is left out with it
    HIDDEN = "hidden"  # the same, by what `exclude` is unless somebody sets it
    OWN = "own"  # what this program keeps
    LINK_OUT = "link_out"
    LINK_TO_FOLDER = "link_to_folder"
    BROKEN_LINK = "broken_link"
    SPECIAL_FILE = "special_file"
    FOLDER_MARKER = "folder_marker"  # how consoles of S3 show an empty folder


# What somebody could miss. Of hidden files, our own and what only shows an empty folder nobody expects a word.
_ONE_AND_MANY = {
    WhyLeftOut.EXCLUDED: ("name that matches `exclude`", "names that match `exclude`"),
    WhyLeftOut.LINK_OUT: ("link that leads out of its source", "links that lead out of their source"),
    WhyLeftOut.LINK_TO_FOLDER: ("link to a folder", "links to folders"),
    WhyLeftOut.BROKEN_LINK: ("link that leads nowhere", "links that lead nowhere"),
    WhyLeftOut.SPECIAL_FILE: ("pipe, socket or device", "pipes, sockets or devices"),
}


class LeftOut(msgspec.Struct):
    """What listings left out.

    Attributes:
        counts: how many, by why.
        examples: what one of them is called, by why.
    """

    counts: dict[WhyLeftOut, int] = msgspec.field(default_factory=dict)
    examples: dict[WhyLeftOut, str] = msgspec.field(default_factory=dict)

    def add(self, why: WhyLeftOut, example: str, n: int = 1) -> None:
        """Count n more of a kind, of which one is called `example`."""
        self.counts[why] = self.counts.get(why, 0) + n
        self.examples.setdefault(why, example)

    def add_all(self, other: "LeftOut") -> None:
        """Count in what another listing left out."""
        for why, n in other.counts.items():
            self.add(why, other.examples[why], n)

    @property
    def n(self) -> int:
        """How many things there are that somebody could miss."""
        return sum(n for why, n in self.counts.items() if why in _ONE_AND_MANY)

    def __str__(self) -> str:
        """A sentence that says how many of what somebody could miss, with an example of each; "" for nothing."""
        found = [self._in_words(why, n) for why, n in sorted(self.counts.items()) if why in _ONE_AND_MANY]
        return f"Left out: {'; '.join(found)}." if found else ""

    def _in_words(self, why: WhyLeftOut, n: int) -> str:
        one, many = _ONE_AND_MANY[why]
        return f"1 {one} ({self.examples[why]})" if n == 1 else f"{n:,} {many} ({self.examples[why]}, …)"
