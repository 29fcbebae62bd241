"""The table of planted bugs fits the project as it stands; `make planted-bugs` plants them."""

import re

import pytest

from tests.planted_bugs.__main__ import tests_of as named_tests
from tests.planted_bugs.bugs import BUGS
from tests.planted_bugs.workplace import PROJECT, NotPlantableError, replaced


def test_all_twelve():
    """Each of the twelve is there, no bug twice, and each plants something."""
    assert {bug.number for bug in BUGS} == set(range(1, 13))
    assert len({(bug.name, bug.where) for bug in BUGS}) == len(BUGS)
    assert all(bug.text != bug.planted for bug in BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.number} {bug.where} {bug.name}")
def test_is_plantable(bug):
    """What a bug replaces stands in its file exactly once, what it plants is Python, and its tests exist."""
    planted = replaced((PROJECT / bug.file).read_text(), bug.text, bug.planted, bug.file)
    compile(planted, bug.file, "exec")
    for test in named_tests(bug):
        file, *names = test.split("::")
        sources = [path.read_text() for path in (PROJECT / file).parent.glob("*.py")]
        assert re.search(rf"^class {names[0]}\b", (PROJECT / file).read_text(), re.MULTILINE)
        assert all(any(re.search(rf"(class|def) {name}\b", source) for source in sources) for name in names)


@pytest.mark.parametrize("source", ["nothing of it", "text text"])
def test_text_must_stand_once(source):
    """A text that is missing or ambiguous is an error that names the file and says what to mend."""
    with pytest.raises(NotPlantableError, match=r"a\.py.*bugs\.py"):
        replaced(source, "text", "other", "a.py")
