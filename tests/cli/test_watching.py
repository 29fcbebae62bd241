"""How a request is seen to go on: a share that grows document by document, and a sentence every few seconds."""

from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from ingest_assets.cli import output
from ingest_assets.cli.watching import BarWatcher, Sentences, SentenceWatcher, Tally
from ingest_assets.engine.progress import Milestone
from resources.document_state.ingest_jobs import JobStage


@pytest.fixture
def told(monkeypatch) -> Callable[[], str]:
    """What was said on stderr, where there is no terminal."""
    file = StringIO()
    monkeypatch.setattr(output, "errors", Console(file=file, highlight=False, width=10_000))
    return file.getvalue


class TestTally:
    def test_moves_with_every_milestone(self):
        """A group that is not written yet moves it as well, and it ends at all of the work."""
        tally, shares = Tally(2), []
        for milestone in Milestone:
            for _ in range(2):
                tally.add(milestone)
                shares.append(tally.share)
        assert shares == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
        assert str(tally) == "2 read, 2 extracted, 2 of 2 done"

    def test_what_is_not_extracted_counts_as_whole(self):
        """Documents that are only built or removed are told to be done, and nothing before."""
        tally = Tally(4)
        for _ in range(4):
            tally.add(Milestone.DONE)
        assert (tally.share, str(tally)) == (1, "4 of 4 done")

    def test_what_is_read_twice_is_no_more_than_all(self):
        """A document whose artifact was lost is read again in the same run."""
        tally = Tally(1)
        tally.add(Milestone.READ)
        tally.add(Milestone.READ)
        assert tally.share == pytest.approx(1 / 3)


class TestSentences:
    @pytest.fixture
    def clock(self):
        """A clock that stands."""
        return SimpleNamespace(now=100.0)

    def test_they_come_every_few_seconds(self, told, clock):
        """Without a terminal documents that are read are told of before the first is done, though not each of them."""
        sentences = Sentences(lambda: clock.now)
        watcher = SentenceWatcher(sentences)
        watcher.begins(1200)
        for _ in range(1200):
            clock.now += 0.01
            watcher.advances(Milestone.READ)
            sentences.look()
        assert told().splitlines() == [
            "Working on 1,200 documents …",
            "Parsing: 500 read, 0 of 1,200 done.",
            "Parsing: 1,000 read, 0 of 1,200 done.",
        ]

    def test_what_takes_long_is_told_again(self, told, clock):
        """What waits for something, before any document or at any stage of them, is said to go on twice a minute."""
        sentences = Sentences(lambda: clock.now)
        watcher = SentenceWatcher(sentences)
        watcher.does("Listing source 'docs'")
        for _ in range(40):
            clock.now += 1
            sentences.look()
        watcher.begins(1)
        watcher.enters(JobStage.PERSISTING)
        for _ in range(40):
            clock.now += 1
            sentences.look()
        assert told().splitlines() == [
            "Listing source 'docs' …",
            "Still listing source 'docs' …",
            "Working on 1 document …",
            "Writing: 0 of 1 done.",
            "Still writing: 0 of 1 done.",
        ]


def test_the_bar_moves_before_a_document_is_done():
    """On a terminal each document that is read moves the bar."""
    bar = Progress(TextColumn("{task.description}"), console=Console(file=StringIO()))
    watcher = BarWatcher(bar)
    watcher.begins(3)
    watcher.advances(Milestone.READ)
    bar.stop()
    assert bar.tasks[0].percentage == pytest.approx(100 / 9)
    assert bar.tasks[0].description == "Parsing: 1 read, 0 of 3 done"


@pytest.mark.parametrize("stage", JobStage)
def test_every_stage_is_shown(stage):
    """On a terminal it is said what is being done: before the first document, and at each stage of them."""
    bar = Progress(TextColumn("{task.description}"), console=Console(file=StringIO()))
    watcher = BarWatcher(bar)
    watcher.does("Listing source 'docs'")
    assert [(task.description, task.total) for task in bar.tasks] == [("Listing source 'docs'", None)]
    watcher.begins(3)
    watcher.enters(stage)
    bar.stop()
    [task] = bar.tasks
    assert task.description.endswith(": 0 of 3 done")
