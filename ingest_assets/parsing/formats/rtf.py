"""RTF: the text between its control words."""

import re

from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_TOKEN = re.compile(
    r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+", re.IGNORECASE
)
_DESTINATIONS = frozenset(
    [
        "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "headerl", "headerr", "headerf",
        "footer", "footerl", "footerr", "footerf", "listtable", "listoverridetable", "rsidtbl", "themedata",
        "colorschememapping", "datastore", "latentstyles", "xmlnstbl", "generator", "fldinst", "pgdsctbl", "revtbl",
    ]
)  # fmt: skip
_WORDS = {
    "par": "\n\n", "line": "\n", "sect": "\n\n", "page": "\n\n", "row": "\n", "cell": " | ", "tab": "\t",
    "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022",
    "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d",
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
    reader = _Reader(f"cp{page[1]}" if page else "cp1252")
    for token in _TOKEN.finditer(content):
        reader.take(*token.groups())
    text.block("".join(reader.out))


class _Reader:
    def __init__(self, encoding: str) -> None:
        self.out: list[str] = []
        self._encoding = encoding
        self._groups = [_Group(hidden=False, skip=1)]
        self._to_skip = 0
        self._raw = bytearray()

    def take(
        self,
        word: str | None,
        number: str | None,
        code: str | None,
        character: str | None,
        brace: str | None,
        plain: str | None,
    ) -> None:
        """Take one token; one of the arguments says which kind it is."""
        group = self._groups[-1]
        if code:
            if self._to_skip:
                self._to_skip -= 1
            elif not group.hidden:
                self._raw.append(int(code, 16))
            return
        self._end_raw()
        if brace:
            self._take_brace(brace, group)
        elif word in _DESTINATIONS or character == "*":
            group.hidden = True
        elif word == "uc":
            group.skip = int(number or 1)
        elif not group.hidden:
            self._show(word, number, character, plain)

    def _take_brace(self, brace: str, group: _Group) -> None:
        self._to_skip = 0
        if brace == "}":
            if len(self._groups) > 1:
                self._groups.pop()
            return
        if len(self._groups) > _DEEPEST:
            raise Refused(Reason.TOO_DEEP, f"Its groups are nested more than {_DEEPEST} deep.")
        self._groups.append(_Group(group.hidden, group.skip))

    def _show(self, word: str | None, number: str | None, character: str | None, plain: str | None) -> None:
        if word == "u" and number:
            self.out.append(chr(int(number) % 0x10000))
            self._to_skip = self._groups[-1].skip
        elif plain:
            self.out.append(plain[self._to_skip :])
            self._to_skip = max(0, self._to_skip - len(plain))
        else:
            self.out.append(_WORDS.get(word or "", "") + _CHARACTERS.get(character or "", ""))

    def _end_raw(self) -> None:
        if not self._raw:
            return
        try:
            self.out.append(self._raw.decode(self._encoding, "replace"))
        except LookupError:
            self.out.append(self._raw.decode("cp1252", "replace"))
        self._raw.clear()
