"""What a document is called: what it says, the heading that stands over it, its name."""

import pytest

from . import makers
from .test_formats import parsed

_SECTIONS = "Summary\n=======\n\nIt is short.\n\nMotivation\n==========\n\nIt is needed.\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- Start Date: 2014-09-16\n\n" + _SECTIONS, id="below a list of facts"),
        pytest.param("It begins with words.\n\n### Aside\n\n" + _SECTIONS, id="below a heading that is no better"),
        pytest.param("---\nweight: 3\n---\n\nIt begins with words.\n\n" + _SECTIONS, id="below front matter and words"),
    ],
)
def test_one_section_of_several_is_no_title(text: str) -> None:
    """Every report has a summary, so that word names none: its name does."""
    assert parsed("0369-num-reform.md", text).title == "0369-num-reform"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("x.md", _SECTIONS, id="nothing is above it"),
        pytest.param("x.md", '<a id="old-name"></a>\n\n' + _SECTIONS, id="an anchor of HTML is above it"),
        pytest.param("x.rst", ".. _label:\n.. highlight:: c\n   :force:\n\n" + _SECTIONS, id="markup is above it"),
        pytest.param("x.rst", ":orphan:\n\n" + _SECTIONS, id="a field without a value is above it"),
        pytest.param("x.md", "Some words.\n\nSummary\n===\n\nIt is short.\n\n## Part\n\nwords", id="it is above all"),
    ],
)
def test_a_heading_that_stands_over_the_document_is_its_title(name: str, text: str) -> None:
    """Nothing that a reader sees comes before it, or every other heading is below it."""
    assert parsed(name, text).title == "Summary"


@pytest.mark.parametrize(
    ("name", "head"),
    [
        pytest.param("x.md", "---\nlinkTitle: no\ntitle: A long name\n---\n\n", id="YAML on its line"),
        pytest.param("x.md", "---\ntitle:\n  A long\n  name\ndate: 1\n---\n\n", id="YAML on the next lines"),
        pytest.param("x.md", "---\ntitle: >-\n  A long\n  name\ndate: 1\n---\n\n", id="YAML folded"),
        pytest.param("x.md", "---\ntitle: 'A long\n  name'\n---\n\n", id="YAML quoted over lines"),
        pytest.param("x.rst", "PEP: 1\nTitle: A long\n       name\nStatus: Final\n\n", id="lines as in a mail"),
        pytest.param("x.rst", ":Author: me,\n   you\n:Title: A long name\n\n", id="a list of fields"),
    ],
)
def test_what_a_text_says_its_title_is_comes_first(name: str, head: str) -> None:
    """However it is broken into lines."""
    assert parsed(name, head + _SECTIONS).title == "A long name"


def test_fields_without_a_title_name_nothing() -> None:
    """Neither does an empty title."""
    assert parsed("x.rst", "PEP: 1\nStatus: Final\n\nwords: Title: no\n\n" + _SECTIONS).title == "x"
    assert parsed("x.md", "---\ntitle:\nweight: 1\n---\n\nWords.\n\n" + _SECTIONS).title == "x"


def test_a_workbook_is_not_called_after_its_first_sheet() -> None:
    """Programs name sheets; a person named the file."""
    document = parsed("prices of may.xlsx", makers.workbook(Sheet1=[["a", "b"], [1, 2]]))
    assert document.title == "prices of may"
    assert document.pieces[0].place.headings == ("Sheet1",)


def test_attributes_of_a_heading_are_not_its_words() -> None:
    """Anchors and classes in braces are for renderers; other braces are words."""
    document = parsed("x.md", "# Past meetings {#past .wide}\n\nwords\n\n## Use {{ name }}\n\nmore", size=20)
    assert document.title == "Past meetings"
    assert document.pieces[-1].place.headings == ("Past meetings", "Use {{ name }}")
