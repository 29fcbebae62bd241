"""Paid extraction from the command line: never above a ceiling, never paid twice, and the ledger right."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.project import Project
from tests.servers import scripted_model as scripted
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer
from tests.servers.scripted_model import PAID, Step

N = 6
MODEL = "openai:gpt-4o-mini"
SOURCE = '[[sources]]\nname = "docs"\nuri = "docs"\n'
PRICE = f'[prices."{MODEL}"]\ninput = 100\noutput = 400\n'


def config(spend: str = "", more: str = "") -> str:
    """An ingest.toml."""
    return f'extractor = "{MODEL}"\ndefault_embedder = "hash"\n{more}\n{SOURCE}\n{PRICE}\n[spend]\n{spend}\n'


@pytest.fixture
def paid(tmp_path: Path, model: ModelServer) -> Project:
    """A project of six documents, each of which takes one call."""
    project = Project(tmp_path, config())
    project.environment = {**ENVIRONMENT, **model.environment()}
    for number in range(N):
        project.write(f"{number}.md", f"Grace Hopper wrote compiler number {number}. Ada Lovelace wrote notes.\n")
    return project


def bill(model: ModelServer) -> int:
    """What the calls really cost, in millionths of a dollar."""
    paid_calls = [call for call in model.calls if call.kind in PAID]
    return sum(100 * call.input_tokens + 400 * call.output_tokens for call in paid_calls)


def spent(project: Project) -> dict[str, Any]:
    """What the ledger says, added up."""
    report = project.json("spend")
    assert not report["open"]
    totals = [totals for models in report["days"].values() for totals in models.values()]
    return {key: sum(each.get(key, 0) for each in totals) for key in ("calls", "micro_usd", "assumed_micro_usd")}


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
