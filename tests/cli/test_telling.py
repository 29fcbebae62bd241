"""What people are told of jobs and documents: on a narrow terminal, and where nothing was done."""

from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from ingest_assets.cli import output
from ingest_assets.cli.jobs import print_jobs
from ingest_assets.cli.work import print_outcome
from ingest_assets.requests.request import RequestOutcome
from ingest_assets.requests.scope import Selected
from resources.document_source.left_out import LeftOut, WhyLeftOut
from resources.document_state.ingest_jobs import IngestJob, JobCounts, JobStatus
from resources.document_state.process_identity import ProcessIdentity
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
    """A link that leads out of its source is missed by nobody, also where there is nothing to do."""
    left_out = LeftOut()
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
