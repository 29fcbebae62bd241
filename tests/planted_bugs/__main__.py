"""Plants each bug in a copy of the project and runs the tests that must catch it.

python -m tests.planted_bugs            # all
python -m tests.planted_bugs 3 sqlite   # those of which each word is the number, or stands in name or place
"""

import re
import sys
import tempfile
import time
from pathlib import Path

import typer

from tests.planted_bugs.bugs import BUGS, HISTORIES, Bug
from tests.planted_bugs.workplace import FAILED, PASSED, Workplace, replaced

# A test that ends in another exception, or whose fixtures do, was broken by the bug and has not caught it.
_ASSERTED = re.compile(r"FAILED .* - (assert |AssertionError|Failed: )")


def tests_of(bug: Bug) -> list[str]:
    """The tests each of which must catch the bug."""
    return [bug.caught_by, HISTORIES[bug.where]] if bug.seen_in_histories else [bug.caught_by]


def missed_by(workplace: Workplace, bug: Bug) -> str:
    """Plant a bug, run its tests and take it out again; "" if it was caught, else why it was not."""
    source = workplace.read(bug.file)
    workplace.write(bug.file, replaced(source, bug.text, bug.planted, bug.file))
    try:
        code, printed = workplace.test(*tests_of(bug))
    finally:
        workplace.write(bug.file, source)
    failed = [line.removeprefix("FAILED ") for line in printed.splitlines() if _ASSERTED.match(line)]
    passed = [test for test in tests_of(bug) if not any(line.startswith(test) for line in failed)]
    if code == FAILED and not passed:
        return ""
    return f"pytest ended with {code}; no assertion failed in {', '.join(passed) or 'nothing'}:\n{printed}"


def chosen(words: list[str]) -> list[Bug]:
    """The bugs that all words name."""
    return [bug for bug in BUGS if all(word == str(bug.number) or word in f"{bug.where} {bug.name}" for word in words)]


def main(words: list[str]) -> int:
    """Plant the bugs; 0 if each was caught and none of the tests fails without them."""
    n_missed = 0
    bugs = chosen(words)
    if not bugs:
        names = ", ".join(dict.fromkeys(bug.name for bug in BUGS))
        typer.echo(f"No bug is called {' '.join(words)!r}. There are: {names}.")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        workplace = Workplace(Path(folder).resolve())
        code, printed = workplace.test(*dict.fromkeys(test for bug in bugs for test in tests_of(bug)))
        if code != PASSED:
            typer.echo(f"Without any bug these tests fail:\n{printed}")
            return 1
        for bug in bugs:
            start = time.monotonic()
            why = missed_by(workplace, bug)
            n_missed += bool(why)
            ending = f"{'NOT CAUGHT' if why else 'caught':<10} {time.monotonic() - start:4.1f} s"
            typer.echo(f"{bug.number:>2} {bug.where:<8} {ending}  {bug.name}\n{why}".rstrip())
    typer.echo(f"{len(bugs) - n_missed} of {len(bugs)} planted bugs were caught.")
    return 1 if n_missed or not bugs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
