"""What a newcomer sees: the samples, ingested and searched."""

import pytest

from tests.end_to_end.project import Project
from tests.samples.facts import BROKEN, FACTS, N_SAMPLES


def test_exactly_the_broken_sample_fails(samples: Project) -> None:
    """One sample is broken on purpose; its reason is named, and all others are in the store."""
    status = samples.json("status")
    assert status["documents"] == N_SAMPLES
    assert status["extraction"] == {"COMPLETED": N_SAMPLES - 1, "FAILED": 1}
    assert status["reasons"] == {"malformed": 1}
    assert status["stores"] == {"default": {"Ingested": N_SAMPLES - 1}}
    assert samples.json("show", BROKEN)["extraction"]["reason"] == "malformed"


def test_nothing_is_read_again(samples: Project) -> None:
    """A second run over unchanged documents requests none, starts no Dagster run, and succeeds."""
    before = samples.json("jobs")
    again = samples.json("run")
    assert again["status"] == "succeeded"
    assert again["n_requested"] == 0
    assert again["n_unchanged"] == N_SAMPLES
    assert samples.json("jobs") == before


@pytest.mark.parametrize(("query", "sample"), FACTS)
def test_a_fact_is_found_in_its_sample(samples: Project, query: str, sample: str) -> None:
    """A question about a fact in a sample names that sample first."""
    assert samples.json("search", query, "-k", "1")[0]["filename"] == sample


def test_chunks_know_their_place(samples: Project) -> None:
    """Pages, headings, sheets and rows survive into what a search gives."""
    places = [hit["place"] for hit in samples.json("search", "engine overhaul prices and departures", "-k", "60")]
    for kind in ("headings", "page", "sheet", "row"):
        assert any(place.get(kind) for place in places), kind


def test_people_get_tables(samples: Project) -> None:
    """Each command that looks speaks to people when --json is not given."""
    for command in (["status"], ["jobs"], ["show", BROKEN], ["search", "ferry"], ["plan"]):
        done = samples.run(*command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
        assert not done.stdout.startswith("{")


def test_a_run_reports_each_document(samples: Project) -> None:
    """The job of the first run has a result for every document, and its counts add up."""
    (job,) = samples.json("jobs")
    assert job["status"] == "partial"
    assert job["n_requested"] == job["n_succeeded"] + job["n_failed"] + job["n_skipped"] + job["n_pending"]
    results = samples.json("jobs", job["job_id"])["results"]
    assert len(results) == N_SAMPLES
    assert {result["run_id"] for result in results} == set(job["run_ids"])
