"""Texts of strangers made safe to look at: what cannot be seen, or makes a text look like another, is named.

Nothing here is about HTML: what comes out is text, and is escaped like any other.
"""

import re

# Controls but tab and line feed; marks, embeddings, overrides and isolates of direction; spaces without width;
# separators that browsers do not show; annotations; byte order marks; tags, in which whole sentences can hide;
# halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with each such character as `⟨U+202E⟩`; line ends of any system as one line feed."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text.replace("\r\n", "\n"))
