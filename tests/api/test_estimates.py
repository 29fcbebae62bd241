"""What a job would take and cost, told before it begins: as `ingest plan` reckons it, within seconds, however many."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest_assets.requests.costing import DocumentCost, SpendEstimate
from ingest_assets.requests.sampling import drawn, of_all
from resources.document_source.document_ids import document_id
from resources.document_state.reasons import Reason
from tests.api.served import Served
from tests.end_to_end.paid_project import config, paid_project
from tests.end_to_end.project import Project
from tests.servers.model_server import ModelServer

ALL = {"filter": {}}


@pytest.fixture
def project(tmp_path: Path, model: ModelServer) -> Project:
    """Three documents that a ceiling held back: known, and not extracted."""
    project = paid_project(tmp_path, model, 3)
    project.configure(config("per_day_usd = 0.0001"))
    assert project.run("run").returncode == 3
    return project


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    """Those, served."""
    with Served(project) as server:
        yield server


def _estimate(served: Served, wanted: dict[str, object]) -> Any:
    answer = served.client.post("/api/ingestion-jobs/estimate", json=wanted)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_estimate_is_that_of_the_command_line(project: Project, served: Served, model: ModelServer) -> None:
    """Calls, dollars and what the ceilings leave are as `ingest plan` says, under today's ceilings; nothing is done."""
    project.configure(config("per_day_usd = 5"))
    planned = project.json("plan")["spending"]
    before = len(served.client.get("/api/ingestion-jobs").json()["jobs"])
    found = _estimate(served, ALL)
    assert (found["nDue"], found["nToExtract"], found["untold"]) == (3, 3, "")
    cost = found["spending"]
    assert cost["model"] == "openai:gpt-4o-mini"
    assert cost["nRead"] == 3
    assert cost["nCalls"] == planned["n_calls"] == 3
    assert cost["worstUsd"] == pytest.approx(planned["worst_micro_usd"] / 1e6)
    assert cost["leftUsd"] == pytest.approx(planned["left_micro_usd"] / 1e6) == 5
    assert not model.calls
    assert len(served.client.get("/api/ingestion-jobs").json()["jobs"]) == before


def test_what_is_extracted_costs_nothing(project: Project, served: Served) -> None:
    """Documents that are only built cost no dollar; those that failed do."""
    project.configure(config("per_day_usd = 100"))
    assert project.run("run", "--mode", "resume").returncode == 0
    assert _estimate(served, ALL)["spending"] is None
    project.write("empty.md", "")
    assert project.run("run").returncode == 1
    found = _estimate(served, ALL)
    assert (found["nCurrent"], found["nToExtract"]) == (3, 1)
    assert found["spending"]["nUnreadable"] == 1


def test_why_there_is_no_estimate_is_told(project: Project) -> None:
    """An extractor that cannot work as it is configured is no estimate of nothing: it is said what is missing."""
    project.configure(config(price="").replace("gpt-4o-mini", "somebody-elses"))
    with Served(project) as served:
        found = _estimate(served, ALL)
    assert found["spending"] is None
    assert "No price is known" in found["untold"]


def test_some_stand_for_all() -> None:
    """Sums are scaled by how many there are for each that was read, and say so; all that were read are not scaled."""
    read = [DocumentCost("a", n_calls=2, worst_micro_usd=10), DocumentCost("b", reason=Reason.MALFORMED)]
    sample = SpendEstimate(read, 2, 1, 10, 4, 20)
    some, every = of_all(sample, 6), of_all(sample, 2)
    assert (some.is_reckoned, some.n_calls, some.n_answered, some.n_unreadable) == (True, 6, 3, 3)
    assert (some.worst_micro_usd, some.expected_micro_usd, some.left_micro_usd) == (30, 12, 20)
    assert not some.fits
    assert (every.is_reckoned, every.n_calls, every.worst_micro_usd, every.fits) == (False, 2, 10, True)


def test_the_same_documents_are_drawn() -> None:
    """Whatever the order they are named in, the same documents stand for all; no folder stands for the rest."""
    letters, reports = ([document_id("o", f"s:{folder}/{n}") for n in range(300)] for folder in ("letters", "reports"))
    ids = letters + reports
    assert drawn(ids) == drawn(ids[::-1])
    assert len(drawn(ids)) == 100
    assert 30 < len(set(drawn(ids)) & set(letters)) < 70
