"""RTF: the text between its control words."""

import re

from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_TOKEN = re.compile(r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+", re.I)
_DESTINATIONS = frozenset(
    [
        "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "headerl", "headerr", "headerf",
        "footer", "footerl", "footerr", "footerf", "listtable", "listoverridetable", "rsidtbl", "themedata",
        "colorschememapping", "datastore", "latentstyles", "xmlnstbl", "generator", "fldinst", "pgdsctbl", "revtbl",
    ]
)  # fmt: skip
_WORDS = {
    "par": "\n\n", "line": "\n", "sect": "\n\n", "page": "\n\n", "row": "\n", "cell": " | ", "tab": "\t",
    "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•",
}  # fmt: skip
_CHARACTERS = {"~": "\u00a0", "_": "-", "\n": "\n\n", "\r": "\n\n", "\\": "\\", "{": "{", "}": "}"}
_DEEPEST = 1000


class _Group:
    __slots__ = ("hidden", "skip")

    def __init__(self, hidden: bool, skip: int) -> None:
        self.hidden = hidden
        self.skip = skip  # characters that stand for a Unicode one in readers that know none


def read(source: Source, text: Text) -> None:
    """Write the text; groups that are no text (fonts, pictures, fields' code) are left out.

    Raises:
        Refused: `too_deep`.
    """
    text.markdown = False
    content = source.content.decode("latin-1")
    page = re.search(r"\\ansicpg(\d{1,5})", content[:2000])
    encoding = f"cp{page[1]}" if page else "cp1252"
    text.block(_text(content, encoding))


def _text(content: str, encoding: str) -> str:
    out: list[str] = []
    raw = bytearray()
    groups = [_Group(hidden=False, skip=1)]
    to_skip = 0
    for token in _TOKEN.finditer(content):
        word, number, code, character, brace, plain = token.groups()
        group = groups[-1]
        if code:
            if to_skip:
                to_skip -= 1
            elif not group.hidden:
                raw.append(int(code, 16))
            continue
        if raw:
            out.append(_decoded(raw, encoding))
            raw.clear()
        if brace == "{":
            if len(groups) > _DEEPEST:
                raise Refused(Reason.TOO_DEEP, f"Its groups are nested more than {_DEEPEST} deep.")
            groups.append(_Group(group.hidden, group.skip))
        elif brace:
            if len(groups) > 1:
                groups.pop()
            to_skip = 0
        elif word in _DESTINATIONS or character == "*":
            group.hidden = True
        elif word == "uc":
            group.skip = int(number or 1)
        elif word == "u" and number:
            if not group.hidden:
                out.append(chr(int(number) % 0x10000))
            to_skip = group.skip
        elif not group.hidden:
            shown = _WORDS.get(word or "", "") + _CHARACTERS.get(character or "", "")
            out.append(shown)
            if plain:
                out.append(plain[to_skip:])
                to_skip = max(0, to_skip - len(plain))
    return "".join(out)


def _decoded(raw: bytearray, encoding: str) -> str:
    try:
        return raw.decode(encoding, "replace")
    except LookupError:
        return raw.decode("cp1252", "replace")
