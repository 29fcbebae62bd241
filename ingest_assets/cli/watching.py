"""How commands show that work goes on: a bar on a terminal, now and then a sentence where there is none."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ingest_assets.cli.output import complain, errors
from ingest_assets.engine.progress import Milestone
from ingest_assets.requests.request import Watcher
from resources.counting import counted

# Often enough for somebody who waits, and for a log that is kept: a dozen lines a minute.
_PAUSE_SECONDS = 5.0
_BAR_WIDTH = 20  # leaves room for the words on a terminal of 80 columns


class Tally:
    """How far the documents of a request are."""

    def __init__(self, n_documents: int) -> None:
        self.n_documents = n_documents
        self._reached: Counter[Milestone] = Counter()

    def add(self, milestone: Milestone) -> None:
        """One more document has reached it."""
        self._reached[milestone] += 1

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1, each milestone of each document counted as much as the others."""
        done = self._reached[Milestone.DONE]
        # Some are done without having been read, and some are read twice, since what was kept of them was lost.
        reached = sum(min(max(self._reached[each], done), self.n_documents) for each in Milestone)
        return reached / (len(Milestone) * self.n_documents) if self.n_documents else 1.0

    def __str__(self) -> str:
        before = [f"{n:,} {each}" for each in (Milestone.READ, Milestone.EXTRACTED) if (n := self._reached[each])]
        return ", ".join([*before, f"{self._reached[Milestone.DONE]:,} of {counted(self.n_documents)} done"])


class SentenceWatcher(Watcher):
    """Tells how a request goes on where there is no terminal: every few seconds, if something has changed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tally = Tally(0)
        self._told_at = 0.0

    def says(self, message: str) -> None:
        """See Watcher."""
        complain(message)

    def begins(self, n_documents: int) -> None:
        """See Watcher."""
        complain(f"Working on {counted(n_documents)} …")
        self._tally, self._told_at = Tally(n_documents), self._clock()

    def advances(self, milestone: Milestone) -> None:
        """See Watcher."""
        self._tally.add(milestone)
        if (now := self._clock()) >= self._told_at + _PAUSE_SECONDS:
            complain(f"{self._tally}.")
            self._told_at = now


class BarWatcher(Watcher):
    """Shows how a request goes on as a bar on the terminal."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tally = Tally(0)
        self._task: TaskID | None = None

    def says(self, message: str) -> None:
        """See Watcher."""
        complain(message)

    def begins(self, n_documents: int) -> None:
        """See Watcher."""
        self._tally = Tally(n_documents)
        self._task = self._bar.add_task(str(self._tally), total=1.0)
        self._bar.start()

    def advances(self, milestone: Milestone) -> None:
        """See Watcher."""
        self._tally.add(milestone)
        if self._task is not None:
            self._bar.update(self._task, completed=self._tally.share, description=str(self._tally))


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watcher]:
    """A watcher for a request; `quiet`: one that says nothing."""
    if quiet:
        yield Watcher()
    elif not errors.is_terminal:
        yield SentenceWatcher()
    else:
        columns = (BarColumn(_BAR_WIDTH), TextColumn("{task.description}"), TimeElapsedColumn())
        bar = Progress(*columns, console=errors)
        try:
            yield BarWatcher(bar)
        finally:
            if bar.tasks:
                bar.stop()


@contextmanager
def counter(what: str, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Counts up on the terminal; nothing is shown where there is none, or with `quiet`."""
    if quiet or not errors.is_terminal:
        yield lambda _: None
        return
    with Progress(TextColumn(what), TextColumn("{task.completed:,}"), TimeElapsedColumn(), console=errors) as bar:
        task = bar.add_task(what, total=None)
        yield lambda n: bar.advance(task, n)
