"""How commands show that work goes on: a bar on a terminal, now and then a sentence where there is none.

Both go on by a thread of their own: whoever watches sees that the work is not dead while it waits for something.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ingest_assets.cli.output import complain, errors
from ingest_assets.engine.progress import Milestone
from ingest_assets.requests.request import Watcher
from resources.counting import counted
from resources.document_state.ingest_jobs import JobStage

# Often enough for somebody who waits, and for a log that is kept: a dozen lines a minute, two if nothing is new.
_PAUSE_SECONDS = 5.0
_LONG_PAUSE_SECONDS = 30.0
_LOOK_SECONDS = 1.0
_BAR_WIDTH = 10  # leaves room for the words on a terminal of 80 columns
_IN_WORDS = {
    JobStage.PARSING: "Parsing",
    JobStage.FILTERING: "Extracting",
    JobStage.ESTIMATING: "Estimating",
    JobStage.WAITING: "Waiting for money",
    JobStage.EXTRACTING: "Extracting",
    JobStage.PERSISTING: "Writing",
}


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
        return ", ".join([*before, f"{self._reached[Milestone.DONE]:,} of {self.n_documents:,} done"])


class Sentences:
    """Tells where there is no terminal what is being done: its latest sentence every few seconds, an old one seldom."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._latest = self._told = ""
        self._told_at = clock()

    def note(self, sentence: str) -> None:
        """What there is to tell from now on."""
        self._latest = sentence

    def tell(self, sentence: str) -> None:
        """Tell it at once."""
        complain(sentence)
        self._latest = self._told = sentence
        self._told_at = self._clock()

    def look(self) -> None:
        """Tell it, if it is time. Called by a thread of its own, since the work may be waiting for something."""
        latest = self._latest
        is_news = latest != self._told
        if latest and self._clock() >= self._told_at + (_PAUSE_SECONDS if is_news else _LONG_PAUSE_SECONDS):
            complain(latest if is_news else f"Still {latest[0].lower()}{latest[1:]}")
            self._told, self._told_at = latest, self._clock()


class SentenceWatcher(Watcher):
    """Tells how a request goes on where there is no terminal."""

    def __init__(self, sentences: Sentences) -> None:
        self._sentences = sentences
        self._tally = Tally(0)
        self._stage = JobStage.PARSING

    def says(self, message: str) -> None:
        """See Watcher."""
        complain(message)

    def does(self, what: str) -> None:
        """See Watcher."""
        self._sentences.note(f"{what} …")

    def begins(self, n_documents: int) -> None:
        """See Watcher."""
        self._tally = Tally(n_documents)
        self._sentences.tell(f"Working on {counted(n_documents)} …")

    def enters(self, stage: JobStage) -> None:
        """See Onlooker."""
        self._stage = stage
        self._note()

    def advances(self, milestone: Milestone) -> None:
        """See Onlooker."""
        self._tally.add(milestone)
        self._note()

    def _note(self) -> None:
        self._sentences.note(f"{_IN_WORDS[self._stage]}: {self._tally}.")


class BarWatcher(Watcher):
    """Shows how a request goes on as a bar on the terminal, which moves while the work waits for something."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tally = Tally(0)
        self._stage = JobStage.PARSING
        self._task: TaskID | None = None

    def says(self, message: str) -> None:
        """See Watcher."""
        complain(message)

    def does(self, what: str) -> None:
        """See Watcher."""
        self._begin(what, None)

    def begins(self, n_documents: int) -> None:
        """See Watcher."""
        self._tally = Tally(n_documents)
        self._begin(str(self._tally), 1.0)

    def enters(self, stage: JobStage) -> None:
        """See Onlooker."""
        self._stage = stage
        self._show()

    def advances(self, milestone: Milestone) -> None:
        """See Onlooker."""
        self._tally.add(milestone)
        self._show()

    def _begin(self, what: str, total: float | None) -> None:
        for before in self._bar.task_ids:
            self._bar.remove_task(before)
        self._task = self._bar.add_task(what, total=total)
        self._bar.start()

    def _show(self) -> None:
        if self._task is not None:
            what = f"{_IN_WORDS[self._stage]}: {self._tally}"
            self._bar.update(self._task, completed=self._tally.share, description=what)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watcher]:
    """A watcher for a request; `quiet`: one that says nothing."""
    if quiet:
        yield Watcher()
    elif not errors.is_terminal:
        with sentences() as telling:
            yield SentenceWatcher(telling)
    else:
        columns = (TimeElapsedColumn(), BarColumn(_BAR_WIDTH), TextColumn("{task.description}"))
        bar = Progress(*columns, console=errors)
        try:
            yield BarWatcher(bar)
        finally:
            _end(bar)


@contextmanager
def sentences() -> Iterator[Sentences]:
    """Sentences that are told while the block is worked on."""
    telling, is_over = Sentences(), threading.Event()

    def tell() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            telling.look()

    thread = threading.Thread(target=tell, name="sentences", daemon=True)
    thread.start()
    try:
        yield telling
    finally:
        is_over.set()
        thread.join()


@contextmanager
def counter(what: str, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Counts up on the terminal, and in sentences where there is none; nothing is shown with `quiet`."""
    if quiet:
        yield lambda _: None
    elif not errors.is_terminal:
        with sentences() as telling:
            n = 0

            def add(more: int) -> None:
                nonlocal n
                n += more
                telling.note(f"{what}: {n:,}" if n else f"{what} …")

            add(0)
            yield add
    else:
        with Progress(TextColumn(what), TextColumn("{task.completed:,}"), TimeElapsedColumn(), console=errors) as bar:
            task = bar.add_task(what, total=None)
            yield lambda n: bar.advance(task, n)


def _end(bar: Progress) -> None:
    """Let the bar stand as it is; one of what was done before any document is of no use any more."""
    for task in bar.tasks:
        if task.total is None:
            bar.remove_task(task.id)
    bar.stop()
