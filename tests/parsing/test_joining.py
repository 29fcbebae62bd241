"""What announces a passage stands in one piece with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.parsing import Chunking, ParsedDocument, ParseLimits
from ingest_assets.parsing.document import parse

from . import makers
from .test_formats import parsed

_SIZE = 400
_BEFORE = " ".join(f"Word {number} of the passage before." for number in range(10))
# Each fits into a piece, and nothing else with it.
_LONG = " ".join(f"Sentence {number} of the passage." for number in range(20))[: _SIZE - 5]
_ITEMS = "\n".join(f"    * child {number} of the list, which says more" for number in range(20))[: _SIZE - 5]
_CODE = "\n".join(f"call_number_{number}(with_an_argument)" for number in range(40))


@pytest.mark.parametrize(
    ("name", "before", "lead", "passage"),
    [
        pytest.param("x.md", _BEFORE, "## A heading", _LONG, id="heading of Markdown"),
        pytest.param("x.md", _BEFORE, "A heading\n---------", _LONG, id="underlined heading of Markdown"),
        pytest.param("x.md", _BEFORE, "## A heading\n[a]: #a-heading", _LONG, id="heading and its anchor"),
        pytest.param("x.md", "# Top", "## Upper\n\n### A heading", _LONG, id="several headings"),
        pytest.param("x.rst", _BEFORE, "A heading\n=========", _LONG, id="heading of reStructuredText"),
        pytest.param("x.rst", _BEFORE, "=========\nA heading\n=========", _LONG, id="heading between two lines"),
        pytest.param("x.rst", _BEFORE, ".. _a-label:\n\nA heading\n=========", _LONG, id="label and heading"),
        pytest.param("x.html", f"<p>{_BEFORE}</p>", "<h2>A heading</h2>", f"<p>{_LONG}</p>", id="heading of a page"),
        pytest.param("x.md", _BEFORE, "* The list:", _ITEMS, id="first line of a list"),
        pytest.param("x.md", _BEFORE, "```python", _CODE + "\n```", id="fence of code too long for a piece"),
        pytest.param("x.rst", _BEFORE, ".. code-block:: c", "   " + _CODE.replace("\n", "\n   "), id="directive"),
    ],
)
def test_no_piece_ends_with_what_announces_the_next(name: str, before: str, lead: str, passage: str) -> None:
    """A heading found by a search is found with its text, and its text by the heading's words."""
    gap = "\n" if passage in {_ITEMS, _CODE + "\n```"} else "\n\n"
    pieces = [piece.text for piece in parsed(name, f"{before}\n\n{lead}{gap}{passage}\n", size=_SIZE).pieces]
    words = lead.replace("<h2>", "").replace("</h2>", "").splitlines()[-1].strip("=-")
    words = words or "A heading"
    holder = next(piece for piece in pieces if words in piece)
    _, _, after = holder.partition(words)
    assert sum(map(str.isalnum, after.replace("a-heading", ""))) > _SIZE // 5
    assert max(map(len, pieces)) <= _SIZE
    assert min(map(len, pieces)) > _SIZE // 10


def test_the_name_of_a_sheet_stands_with_its_first_rows() -> None:
    """Also where the rows are more than a piece holds."""
    rows: list[list[str | int]] = [[f"column {column}" for column in range(4)]]
    rows += [[f"value {row}.{column}" for column in range(4)] for row in range(20)]
    first = parsed("x.xlsx", makers.workbook(Prices=rows), size=_SIZE).pieces[0]
    assert first.text.startswith("## Prices\n\ncolumn 0")
    assert first.place.sheet == "Prices"


def test_code_that_fits_into_a_piece_is_not_cut_for_its_heading() -> None:
    """Whole code is worth more: its place names the heading."""
    code = f"```python\n{_CODE[:381]}\n```"
    pieces = parsed("x.md", f"# Top\n\n{_BEFORE}\n\n## A heading\n\n{code}\n", size=_SIZE).pieces
    assert pieces[-1].text == code
    assert pieces[-1].place.headings == ("Top", "A heading")


def test_a_short_section_is_not_joined_with_the_next() -> None:
    """What stands under another heading is not its text."""
    text = f"# Top\n\n{_LONG}\n\n## Short\n\nNone.\n\n## Long\n\n{_LONG[:385]}"
    places = {piece.text: piece.place.headings for piece in parsed("x.md", text, size=_SIZE).pieces}
    assert places["## Short\n\nNone."] == ("Top", "Short")


def test_a_heading_above_another_is_placed_at_the_one_that_has_text() -> None:
    """A piece that begins with several headings begins with the text of the last."""
    text = f"# Top\n\n## Part\n[part]: #part\n\n### Detail\n\n{_LONG}\n\n## Other\n\nwords"
    pieces = parsed("x.md", text, size=_SIZE).pieces
    assert pieces[0].place.headings == ("Top", "Part", "Detail")
    assert pieces[-1].place.headings == ("Top", "Other")
    bare = "Top\n===\n\nPart\n----\n\nwords\n"
    assert parsed("x.rst", bare).pieces[0].place.headings == ("Top", "Part")


def test_the_splitter_of_a_user_has_the_last_word() -> None:
    """It may well want headings alone."""
    chunking = Chunking(splitter="tests.parsing.splitters:by_line")
    outcome = parse("x.md", b"# Top\n\n## Part\n\nwords", ParseLimits(), chunking)
    assert isinstance(outcome, ParsedDocument)
    assert [piece.text for piece in outcome.pieces] == ["# Top", "## Part", "words"]


_PARTS = st.sampled_from(
    [
        "# One",
        "## Two",
        "### Three\n[three]: #3",
        "Under\n=====",
        "words",
        _LONG,
        _BEFORE[:90],
        "```sh\nrun\n```",
        f"```c\n{_CODE}\n```",
        "- item\n  - below it",
        ".. note::",
        "    indented",
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
        "漢字" * 150,
    ]
)


@given(
    parts=st.lists(_PARTS, min_size=1, max_size=25),
    name=st.sampled_from(["x.md", "x.rst", "x.txt"]),
    size=st.integers(1, 600),
    overlap=st.sampled_from([0, 0, 1, 30]),
)
def test_pieces_are_the_text_in_order_and_within_the_size(parts: list[str], name: str, size: int, overlap: int) -> None:
    """Whatever it is made of, nothing is lost, doubled or too long, and places say where it stands."""
    text = "\n\n".join(["A word.", *parts])
    outcome = parse(name, text.encode(), ParseLimits(), Chunking(size=size, overlap=min(overlap, size - 1)))
    assert isinstance(outcome, ParsedDocument)
    covered = 0
    for piece in outcome.pieces:
        assert len(piece.text) <= size
        assert text[piece.place.start : piece.place.end] == piece.text
        assert not text[covered : piece.place.start].strip()
        assert piece.place.end > covered
        assert overlap or piece.place.start >= covered
        covered = piece.place.end
    assert not text[covered:].strip()
