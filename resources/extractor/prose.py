"""Prose out of a chunk: paragraphs without code, tables, rules and headings, and the sentences in them.

Everything here looks at each character a fixed number of times, whatever the text: texts are untrusted.
"""

from collections.abc import Iterable, Iterator

import sentencex

_RULE_CHARACTERS = "-=~^*_+#.:`'\"|<> "
_CODE_ENDS = ("{", "}", ";", "};", "):", "\\", "::", "[", "(")
_CODE_MARKS = ("==", "=>", "->", "::", "();", "():", "&&", "||", "</", "/>", "{{", "}}", "${", "\\n", " = ")
_BULLETS = ("- ", "* ", "+ ", "• ", "> ")
_BOILERPLATE = (
    "all rights reserved",
    "copyright",
    "licensed under",
    "cookie",
    "click here",
    "terms of use",
    "privacy policy",
    "subscribe",
    "table of contents",
)
_SHORTEST, _LONGEST, _FEWEST_SPACES = 40, 400, 5
# Where sentences may end; a paragraph without one has no statement, and need not be segmented.
_SENTENCE_ENDS = (".", "!", "?", '."', ".)", "?)", "!)", ".”", "。")


def paragraphs_of(text: str) -> Iterator[str]:
    """The stretches of running text, each with its lines joined."""
    held: list[str] = []
    in_fence = False
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            in_fence = not in_fence
            stripped = ""
        if in_fence or not stripped or not _is_prose(line, stripped):
            if held:
                yield " ".join(held)
                held = []
        elif stripped.startswith(_BULLETS):
            if held:
                yield " ".join(held)
            held = [stripped[2:].lstrip()]
        else:
            held.append(stripped)
    if held:
        yield " ".join(held)


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph, without the space around them."""
    return [sentence.strip() for sentence in sentencex.segment("en", paragraph)]


def is_statement(sentence: str) -> bool:
    """Whether it is a whole, well-formed sentence that says something on its own."""
    return (
        _SHORTEST <= len(sentence) <= _LONGEST
        and (sentence[0].isupper() or sentence[0].isdigit())
        and sentence.endswith(_SENTENCE_ENDS)
        and sentence.count(" ") >= _FEWEST_SPACES
        and not _contains_any(sentence, _CODE_MARKS)
        and not _contains_any(sentence.lower(), _BOILERPLATE)
    )


def _is_prose(line: str, stripped: str) -> bool:
    """Whether a line is neither code, nor a table's row, nor a heading, nor a rule."""
    return not (
        line.startswith(("    ", "\t", "#", "..", "|", ">>>", "$ "))
        or "\t" in stripped
        or stripped.endswith(_CODE_ENDS)
        or stripped.count("|") > 1
        or not stripped.strip(_RULE_CHARACTERS)
    )


def _contains_any(text: str, parts: Iterable[str]) -> bool:
    for part in parts:  # noqa: SIM110 a generator takes twice as long, and this is the innermost loop
        if part in text:
            return True
    return False
