"""Paid extraction from the command line: never above a ceiling, never paid twice, and the ledger right."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from resources.clock import utc_now
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.job_records import IngestJobs
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_ledger import SpendLedger
from resources.document_state.workers import Worker
from resources.records.sqlite_backend import SqliteBackend
from tests.end_to_end.paid_project import MODEL, bill, config, paid_project, spent
from tests.end_to_end.project import Project
from tests.servers import scripted_model as scripted
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer
from tests.servers.scripted_model import Step
from tests.spending.spending import reservation

N = 6


@pytest.fixture
def paid(tmp_path: Path, model: ModelServer) -> Project:
    """A project of six documents, each of which takes one call."""
    return paid_project(tmp_path, model, N)


def test_the_ledger_says_what_was_paid(paid: Project, model: ModelServer) -> None:
    """Calls and cost are those of the server, by day, by job and by document; extracting again by force is free."""
    job = paid.json("run")
    assert spent(paid) == {"calls": N, "micro_usd": bill(model), "assumed_micro_usd": 0}
    assert paid.json("spend")["jobs"][job["job_id"]]["models"][MODEL]["micro_usd"] == bill(model)
    assert job["estimated_cost"] * 1e6 > bill(model)
    results = paid.json("jobs", job["job_id"])["results"]
    assert sum(result["micro_usd"] for result in results) == bill(model)
    assert paid.json("run", "--force")["n_succeeded"] == N
    assert len(model.calls) == N


def test_a_chunk_that_was_paid_for_is_free_in_any_document(paid: Project, model: ModelServer) -> None:
    """A copy under another name has the same entries and costs no call."""
    paid.json("run")
    paid.write("copy.md", (paid.docs / "0.md").read_text())
    assert paid.json("run")["n_succeeded"] == 1
    assert len(model.calls) == N
    assert paid.json("show", "docs/copy.md")["n_entries"] == paid.json("show", "docs/0.md")["n_entries"]


@pytest.mark.parametrize("ceiling", ["per_day_usd", "per_job_usd"])
def test_over_the_ceiling_nothing_is_paid(paid: Project, model: ModelServer, ceiling: str) -> None:
    """The job is blocked, its documents PENDING with what to do; raised, the ceiling lets them through."""
    paid.configure(config(f"{ceiling} = 0.01"))
    blocked = paid.json("run", code=3)
    assert (blocked["status"], blocked["n_pending"], blocked["n_failed"]) == ("blocked", N, 0)
    assert f"spend.{ceiling} = $0.01" in blocked["error_message"]
    assert not model.calls
    status = paid.json("status")
    assert status["extraction"] == {"PENDING": N}
    why = paid.run("why", "docs/0.md").stdout
    assert "spend_ceiling" in why
    paid.configure(config(f"{ceiling} = 100"))
    assert paid.json("run")["n_succeeded"] == N


def test_what_is_done_before_the_ceiling_is_counted(paid: Project, model: ModelServer) -> None:
    """Batch after batch until one does not fit: those before it are extracted, the others stay as they are."""
    paid.configure(config(more="[llm]\nmax_tokens = 256", spend="per_day_usd = 0.75") + "[runs]\ngroup = 1\n")
    blocked = paid.json("run", code=3)
    assert 0 < blocked["n_succeeded"] < N
    assert blocked["n_succeeded"] + blocked["n_pending"] == N
    assert len(model.calls) == blocked["n_succeeded"]
    assert spent(paid)["micro_usd"] == bill(model) <= 750_000
    paid.configure(config())
    assert paid.json("run")["n_succeeded"] == N - blocked["n_succeeded"]
    assert len(model.calls) == N


def test_a_lost_reply_costs_one_call_more(paid: Project, model: ModelServer) -> None:
    """Asked once more, and what was paid without an answer stands in the ledger at its worst case."""
    model.script(Step(scripted.DROP, contains="compiler number 3", times=1))
    assert paid.json("run")["n_succeeded"] == N
    assert len(model.calls) == N + 1
    found = spent(paid)
    assert found["calls"] == N + 1
    assert found["assumed_micro_usd"] > 0
    assert found["micro_usd"] >= bill(model)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_ends_in_mid_call_pays_only_what_was_in_flight_again(
    paid: Project, model_process: ModelServer, sign: signal.Signals
) -> None:
    """Answers that had arrived cost nothing more; the ledger never says less than what was paid."""
    model = model_process
    paid.environment = {**ENVIRONMENT, **model.environment()}
    paid.configure(config(more="[llm]\nconcurrency = 2"))
    model.script(Step(seconds=0.1, times=3), Step(seconds=5.0, times=2))
    run = paid.start("run")
    until = time.monotonic() + 60
    while len(model.calls) < 5 and time.monotonic() < until:
        time.sleep(0.05)
    run.send_signal(sign)
    run.communicate(timeout=60)
    model.script()
    assert paid.json("run", "--mode", "resume")["n_failed"] == 0
    assert paid.json("status")["build"] == {"COMPLETED": N}
    assert N <= len(model.calls) <= N + 3
    found = spent(paid)
    assert bill(model) <= found["micro_usd"]


async def test_a_run_that_waits_for_money_says_so_and_can_be_interrupted(paid: Project, model: ModelServer) -> None:
    """What another worker has reserved may come back: the job is at `waiting`. Ctrl-C gives its documents back."""
    paid.configure(config("per_day_usd = 100"))
    assert paid.run("state", "create").returncode == 0
    backend = SqliteBackend(paid.root / ".ingest" / "state.db")
    other = await Worker.register(backend, "other", utc_now())
    ledger, theirs = SpendLedger(backend), reservation("theirs", 95_000_000, worker_id=other.worker_id)
    assert await ledger.reserve(theirs, Ceilings(), utc_now()) is None
    run = paid.start("run")
    async with asyncio.timeout(120):
        while not [job for job in await IngestJobs(backend).recent(1) if job.stage is JobStage.WAITING]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=120)[1]
    assert (run.returncode, model.calls) == (130, [])
    assert "Waiting up to 600 s for batches under way" in said
    assert await RecordDocumentStateStore(backend).list_open(lambda label: label.claimed) == []
    assert await ledger.open_reservations() == [theirs]
    await backend.close()


def test_a_plan_says_what_it_would_cost(paid: Project, model: ModelServer) -> None:
    """Per document and in all, against what is left: at least what is paid then. Nothing is asked and nothing kept."""
    paid.configure(config("per_day_usd = 50"))
    paid.write("broken.pdf", "%PDF-1.4 nothing")
    planned = paid.json("plan")["spending"]
    assert (planned["n_calls"], planned["left_micro_usd"], planned["expected_micro_usd"]) == (N, 50_000_000, None)
    [broken] = [cost for cost in planned["documents"] if cost["reason"]]
    assert (broken["document_id"].split("-")[0], broken["n_calls"]) == ("broken.pdf", 0)
    assert not model.calls
    assert paid.json("plan")["spending"] == planned
    job = paid.json("run", code=1)
    assert job["n_succeeded"] == N
    assert (
        round(job["estimated_cost"] * 1e6)
        == planned["worst_micro_usd"]
        == sum(cost["worst_micro_usd"] for cost in planned["documents"])
    )
    assert bill(model) <= planned["worst_micro_usd"]


def test_a_plan_leaves_out_what_is_journaled(paid: Project, model: ModelServer) -> None:
    """A copy, and what is extracted anew by request, cost nothing; what is new is expected by what calls came to."""
    paid.json("run")
    paid.write("copy.md", (paid.docs / "0.md").read_text())
    paid.write("new.md", "Nobody has ever read this sentence.")
    planned = paid.json("plan")["spending"]
    costs = {cost["document_id"].split("-")[0]: cost for cost in planned["documents"]}
    assert (costs["copy.md"]["n_calls"], costs["copy.md"]["n_answered"], costs["copy.md"]["worst_micro_usd"]) == (
        0,
        1,
        0,
    )
    assert 0 < costs["new.md"]["expected_micro_usd"] < costs["new.md"]["worst_micro_usd"]
    assert (planned["n_calls"], len(model.calls)) == (1, N)
    shown = paid.run("plan").stdout
    assert "1 calls to a model" in shown
    assert "No ceiling" in shown
    assert paid.json("plan", "--no-estimate")["spending"] is None
