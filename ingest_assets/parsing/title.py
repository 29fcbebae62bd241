"""What a document is called."""

import re
from pathlib import PurePosixPath

from .text import Text

# Markup before a first heading that shows no words of its own: anchors of HTML, and of reStructuredText labels,
# comments, directives and fields without a value.
_UNSEEN = re.compile(r"<[^<>]*>|^\.\.(?:[ \t][^\n]*)?(?:\n+[ \t][^\n]*)*|^:[\w-]+:[ \t]*$", re.MULTILINE)
_LONGEST_UNSEEN = 5000


def title_of(text: Text, whole: str, filename: str) -> str:
    """What it says its title is, else the heading that stands over it, else its name.

    Of many documents the first heading is "Summary" or "Abstract" and tells nothing: one of several sections, below
    words of its own. A heading is a title if it is above all others, or if nothing is above it.
    """
    if text.headings and (_is_above_others(text) or _opens(whole, text.headings[0].offset)):
        text.suggest_title(text.headings[0].title)
    text.suggest_title(PurePosixPath(filename).stem)
    return text.title or "untitled"


def _is_above_others(text: Text) -> bool:
    first, *others = text.headings
    return all(first.level < other.level for other in others)


def _opens(whole: str, offset: int) -> bool:
    return offset <= _LONGEST_UNSEEN and not _UNSEEN.sub("", whole[:offset]).strip()
