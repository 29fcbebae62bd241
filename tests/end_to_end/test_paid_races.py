"""Many one-document jobs race for a day's ceiling: at no moment is more spent, or perhaps spent, than it allows."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end.dying import Point
from tests.end_to_end.paid_project import MODEL, config, paid_project, spent
from tests.end_to_end.project import Project
from tests.servers.model_server import ModelServer
from tests.servers.scripted_model import Step

# Each call costs exactly its worst case, so that how many fit is a number and no matter of luck.
_TOKENS = 256
_MICRO_USD = 400 * _TOKENS
_PRICE = f'[prices."{MODEL}"]\ninput = 0\noutput = 400\n'
_MID_CALL = Point("after", 1, "resources.extractor.llm.calling", "Caller.execute")


def race_for_ceiling(
    folder: Path, model: ModelServer, *, n_documents: int, n_affordable: int, n_killed: int, at_once: int
) -> Counter[str]:
    """Let a job for each document race, the first `n_killed` of them to their death; what became of the documents."""
    model.script(Step(output_tokens=_TOKENS))
    project = paid_project(folder, model, n_documents)
    ceiling = n_affordable * _MICRO_USD / 1_000_000
    llm = f"[llm]\nmax_tokens = {_TOKENS}"
    project.configure(config(f"per_day_usd = {ceiling}", llm, _PRICE))

    def run(number: int) -> int | None:
        document = f"docs/{number}.md"
        if number < n_killed:
            project.dies(_MID_CALL, "run", document)
            return None
        return project.run("run", document).returncode

    with ThreadPoolExecutor(at_once) as threads:
        codes = Counter(threads.map(run, range(n_documents)))
    assert codes.keys() <= {0, 3, None}
    assert len(model.calls) * _MICRO_USD <= n_affordable * _MICRO_USD
    found = Counter(project.json("status")["extraction"])
    assert (found["COMPLETED"], codes[0]) == (len(model.calls) - n_killed,) * 2
    project.configure(config("per_day_usd = 1000", llm, _PRICE))
    assert project.json("run", "--mode", "resume")["n_failed"] == 0
    _check_all_paid(project, model, n_documents, n_killed)
    return found


def _check_all_paid(project: Project, model: ModelServer, n_documents: int, n_killed: int) -> None:
    """Each document is there, each call was paid once but those that were killed, and the ledger knows of each."""
    assert project.json("status")["build"] == {"COMPLETED": n_documents}
    assert len(model.calls) == n_documents + n_killed
    ledger = spent(project)
    assert (ledger["calls"], ledger["assumed_micro_usd"]) == (len(model.calls), n_killed * _MICRO_USD)
    assert ledger["micro_usd"] == len(model.calls) * _MICRO_USD


@pytest.mark.parametrize("n_killed", [0, 1])
def test_exactly_what_can_be_paid_is_extracted(tmp_path: Path, model: ModelServer, n_killed: int) -> None:
    """What does not fit stays PENDING until the ceiling is raised; a call that was killed has used up its place."""
    found = race_for_ceiling(tmp_path, model, n_documents=6, n_affordable=3, n_killed=n_killed, at_once=3)
    assert found == {"COMPLETED": 3 - n_killed, "PENDING": 3 + n_killed}
