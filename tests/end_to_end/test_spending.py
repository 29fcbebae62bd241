"""`ingest spend` and `ingest cache`: what people see of ledger and journal."""

import pytest

from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.clock import utc_now
from resources.document_state.spend_book import Ceilings
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger, day_of
from resources.records.sqlite_backend import SqliteBackend
from tests.end_to_end.project import Project
from tests.paid_results.contract import USAGE, answer, call, key
from tests.spending.spending import reservation


@pytest.fixture
async def bought(project: Project) -> Project:
    """A project that paid for two answers in one call, and has a batch under way."""
    assert project.run("state", "create").returncode == 0
    backend = SqliteBackend(project.root / ".ingest" / "state.db")
    journal = SqliteJournal(project.root / ".ingest" / "artifacts" / "artifacts-paid.db")
    gate = SpendGate(SpendLedger(backend), journal)
    await gate.admit(reservation("r1", 500), Ceilings(), utc_now())
    await journal.begin("r1", [call(), call("lost", 40)])
    await journal.record("r1", call(), [answer("a"), answer("b")], USAGE, utc_now())
    await gate.settle("r1")
    await gate.admit(reservation("r2", 1_500_000), Ceilings(), utc_now())
    await journal.shut()
    await backend.close()
    return project


def test_nothing_spent(project: Project) -> None:
    """A project that never paid says so."""
    assert project.run("spend").stdout == "Nothing was spent.\n"
    assert project.json("cache", "stats") == []


async def test_spend(bought: Project) -> None:
    """The ledger is shown by day, model and job, estimate against actual, with what is reserved."""
    shown = bought.json("spend")
    totals = {"calls": 2, "input_tokens": 30, "output_tokens": 9, "micro_usd": 100}
    totals |= {"assumed_micro_usd": 40, "estimated_micro_usd": 500}
    assert shown["days"] == {day_of(utc_now()): {"m": totals}}
    assert shown["jobs"]["j"]["models"] == {"m": totals}
    assert [each["reservation"]["reservation_id"] for each in shown["open"]] == ["r2"]
    told = bought.run("spend").stdout
    assert "$0.0001" in told
    assert "Reserved by 1 batches under way: $1.50." in told


async def test_cache(bought: Project) -> None:
    """Answers are counted with what they would cost again; pruning says so first and removes only when told to."""
    [kept] = bought.json("cache", "stats")
    assert (kept["n_results"], kept["usage"]) == (2, {"input_tokens": 30, "output_tokens": 9, "micro_usd": 60})
    assert bought.run("cache", "prune").returncode == 2
    asked = bought.run("cache", "prune", "--model", "m")
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    assert bought.json("cache", "prune", "--older-than", "1", "--yes") == []
    assert bought.json("cache", "stats") == [kept]
    assert bought.json("cache", "prune", "--model", "m", "--yes") == [kept]
    assert bought.json("cache", "stats") == []
    journal = SqliteJournal(bought.root / ".ingest" / "artifacts" / "artifacts-paid.db")
    assert await journal.find([key("a")]) == {}
    await journal.shut()
