"""What people are told of jobs and documents: on a narrow terminal, and where nothing was done."""

from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from ingest_assets.cli import output
from ingest_assets.cli.inspect import print_record
from ingest_assets.cli.jobs import print_jobs
from ingest_assets.cli.work import print_outcome
from ingest_assets.requests.request import RequestOutcome
from ingest_assets.requests.scope import Selected
from resources.counting import counted
from resources.document_source.left_out import LeftOut, WhyLeftOut
from resources.document_state import transitions
from resources.document_state.ingest_jobs import IngestJob, JobCounts, JobStatus
from resources.document_state.process_identity import ProcessIdentity
from resources.document_state.reasons import Reason
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.take_up import Mode
from sensors.discovered import Discovered, total

JOB_ID = "0123456789abcdef" * 2


@pytest.fixture
def told(monkeypatch) -> Callable[[], str]:
    """What was printed, on a terminal of 80 columns."""
    file = StringIO()
    monkeypatch.setattr(output, "console", Console(file=file, highlight=False, width=80))
    return file.getvalue


def job(n_listed: int, status: JobStatus, **counts: int) -> IngestJob:
    """A job that has ended."""
    now = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    return IngestJob(
        job_id=JOB_ID,
        scope_id="default",
        user_id="me",
        mode=Mode.RETRY_FAILED,
        created_at=now,
        owner=ProcessIdentity("", "", 1, ""),
        n_listed=n_listed,
        status=status,
        completed_at=now,
        counts=JobCounts(**counts),
    )


def test_a_jobs_id_can_be_copied(told):
    """The id of a job stands on one line however narrow the terminal is, and counts of nothing are left out."""
    print_jobs([job(1234, JobStatus.PARTIAL, succeeded=1200, failed=34)])
    assert JOB_ID in told()
    assert "1,234" in told()
    assert "skipped" not in told()
    assert max(len(line) for line in told().splitlines()) <= 80


@pytest.mark.parametrize(("n", "says"), [(0, "0 documents"), (1, "1 document"), (1234, "1,234 documents")])
def test_counts_are_words(told, n, says):
    """One document is no "1 documents"."""
    print_outcome(RequestOutcome(Selected([], n_unchanged=n)))
    assert told() == f"Nothing to do: {says} unchanged.\n"


def test_what_a_listing_left_out_is_told(told):
    """A link that leads out of its source is missed by nobody, also where there is nothing to do.

    Of files that are hidden or our own there is no word at each run.
    """
    left_out = LeftOut()
    left_out.add(WhyLeftOut.HIDDEN, ".git", 3)
    left_out.add(WhyLeftOut.OWN, "state.db")
    left_out.add(WhyLeftOut.LINK_OUT, "plan.md")
    left_out.add(WhyLeftOut.SPECIAL_FILE, "queue", 2)
    print_outcome(RequestOutcome(Selected([]), total({"a": Discovered(left_out=left_out), "b": Discovered()})))
    assert " ".join(told().split()) == (
        "Left out: 1 link that leads out of its source (plan.md); 2 pipes, sockets or devices (queue, …). "
        "Nothing to do: 0 documents unchanged."
    )


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"busy": 3}, "nothing was done, since another process is at these documents."),
        ({"unchanged": 3}, "there was nothing to do."),
        ({"succeeded": 2, "failed": 1}, "succeeded. 2 of 3 documents succeeded."),
    ],
)
def test_nothing_done_is_no_success(told, counts, says):
    """A job whose documents others had, or that were done already, is not told as a success of 0 of 0."""
    print_outcome(RequestOutcome(Selected([]), job=job(3, JobStatus.SUCCEEDED, **counts)))
    assert f"Job {JOB_ID}: {says}" in " ".join(told().split())
    assert "0 of 0" not in told()


def test_a_record_tells_what_there_is_to_tell(told):
    """No row is empty, no type is "?", a failure stands in rows of its own, and times are to the second, in UTC."""
    now = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    doc = transitions.discovered("d", "default", "docs", "docs:d.md", "v", 1234, ("default",), now)
    doc = transitions.claimed(doc, "worker", "run", now, extract=True)
    print_record(transitions.extraction_failed(doc, Reason.EMPTY_FILE, "It is empty.", now, RetryPolicy()))
    rows = dict(line.split("  ", 1) for line in told().splitlines())
    assert all(value.strip() for value in rows.values())
    assert (rows["extraction"].strip(), rows["error"].strip()) == ("FAILED: empty_file", "It is empty.")
    assert rows["known since (UTC)"].strip() == "2026-01-02 03:04:05"
    assert "type" not in rows


def test_rows_in_a_file_are_as_long_as_what_they_say(told):
    """One long cell does not pad all the others with blanks where nobody wraps them."""
    output.print_table(["document", "error"], [("a", "short"), ("b", "a longer one")])
    assert told() == "document  error\na         short\nb         a longer one\n"


@pytest.mark.parametrize(("n", "says"), [(0, "0 pages"), (1, "1 page"), (1234, "1,234 pages")])
def test_one_is_counted_as_one(n, says):
    """Of anything."""
    assert counted(n, "page") == says
