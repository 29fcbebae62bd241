"""What cannot be seen is shown."""

import sys
import unicodedata

import pytest

from ingest_assets.page.visible_text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("invoice\u202egpj.exe", "invoice⟨U+202E⟩gpj.exe"),
        ("a\x00b\x1b[31m", "a⟨U+0000⟩b⟨U+001B⟩[31m"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("hi\U000e0069\U000e0067", "hi⟨U+E0069⟩⟨U+E0067⟩"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("two\r\nlines\tand a tab\n", "two\nlines\tand a tab\n"),
        ("é ש 日 👩\u200d🚒", "é ש 日 👩\u200d🚒"),
    ],
)
def test_what_hides_is_named(text: str, shown: str) -> None:
    """Controls, marks of direction, invisible spaces, tags, halves of characters are named; writing stays as it is."""
    assert visible(text) == shown


def test_no_control_and_no_mark_of_direction_is_left() -> None:
    """Of all characters none that is a control or turns a text around comes through, but tab and line feed."""
    turning = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        is_control = unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\n"
        if is_control or unicodedata.bidirectional(character) in turning:
            assert visible(character) == f"⟨U+{number:04X}⟩"
